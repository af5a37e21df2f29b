"""Thirty visitors at once: how long a class waits for its page.

    python -m bench.visitors

A server of its own and, for each visitor, what a browser sends and receives, without a browser that would want the same
cores. A visitor's time ends where the whole page has been sent. “Alone” is one visitor with a new sentence; “one link”
thirty who open the same new link at once, “one sentence” the same thirty going on to one new sentence, “their own”
to thirty new ones.
"""

import asyncio
import statistics
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from bench.pages import served
from core.distance import HEAD, TAIL
from pages.frame.walk import STEPS

PAGE = Path(__file__).parent / "VISITORS.md"
APP = ("streamlit", "run", "app.py", "--server.headless=true")
VISITORS = 30
PAGES = ("start", "mixing", "logit_lens")
PROTOCOL = Subprotocol("streamlit")
MODELS = ("specimen-qwen3", "smollm2-135m")
NAMES = ("Ann", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jim", "Kay", "Lou", "Max", "Ned", "Oda")


class Visitor:
    """One session, as a browser holds it."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def see(self, page: str, model: str, text: str) -> float:
        """Seconds until the page stands. Raises RuntimeError for an error in its place, or another sentence's page."""
        asked = BackMsg()
        asked.rerun_script.query_string = urlencode({"models": model, "text": text})
        asked.rerun_script.page_name = page
        began = asyncio.get_running_loop().time()
        await self.socket.send(asked.SerializeToString())
        shown = False
        while True:
            received = await self.socket.recv(decode=False)
            shown |= text.encode() in received
            message = ForwardMsg.FromString(received)
            match message.WhichOneof("type"):
                case "page_not_found":
                    raise RuntimeError(f"There is no page “{page}”.")
                case "delta" if message.delta.new_element.WhichOneof("type") == "exception":
                    raise RuntimeError(message.delta.new_element.exception.message)
                case "script_finished" if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    if not shown:
                        raise RuntimeError(f"The page is not about “{text}”.")
                    return asyncio.get_running_loop().time() - began


def sentence(number: int) -> str:
    """Another one for each number."""
    first, second = NAMES[number % len(NAMES)], NAMES[(number // len(NAMES) + number + 1) % len(NAMES)]
    return (HEAD + TAIL).replace("Alice", first).replace("Bob", second)


async def occasions(url: str, page: str, model: str, first: int) -> dict[str, list[float]]:
    """Each visitor's seconds, by occasion. `first` is the number of the first sentence: each is new to the server."""
    address = f"{url.replace('http', 'ws')}/_stcore/stream"
    async with AsyncExitStack() as open_ones:

        async def come() -> Visitor:
            return Visitor(
                await open_ones.enter_async_context(connect(address, subprotocols=[PROTOCOL], max_size=None))
            )

        async def see(visitors: Sequence[Visitor], numbers: Sequence[int]) -> list[float]:
            pairs = zip(visitors, numbers, strict=True)
            return await asyncio.gather(*(visitor.see(page, model, sentence(number)) for visitor, number in pairs))

        one, many = await come(), [await come() for _ in range(VISITORS)]
        await see([one], [first])
        return {
            "alone": await see([one], [first + 1]),
            "one link": await see(many, [first + 2] * VISITORS),
            "one sentence": await see(many, [first + 3] * VISITORS),
            "their own": await see(many, range(first + 4, first + 4 + VISITORS)),
        }


def measure() -> Iterator[str]:
    """The table's lines, in Markdown."""
    titles = {step.path: step.title for step in STEPS}
    with served(*APP) as url:
        for model in MODELS:
            for place, page in enumerate(PAGES):
                found = asyncio.run(occasions(url, "" if page == "start" else page, model, 40 * place))
                times = (f"{statistics.median(each):.1f}, {max(each):.1f}" for each in list(found.values())[1:])
                yield f"| {titles[page]} | {model} | {found['alone'][0]:.1f} | {' | '.join(times)} |"


def main() -> None:
    """Prints the table and writes it."""
    lines = [
        "| page | model | alone | one link: median, longest | one sentence | their own |",
        "|---|---|---|---|---|---|",
    ]
    for line in measure():
        print(line, flush=True)
        lines.append(line)
    about = __doc__.split("\n\n", 2)[2].strip()
    table = "\n".join(lines)
    PAGE.write_text(
        f"# Thirty visitors at once\n\n`python -m bench.visitors` wrote this page. Seconds.\n\n{table}\n\n{about}\n",
        "utf-8",
    )


if __name__ == "__main__":
    main()
