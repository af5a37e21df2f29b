// A row of switches for each half of the layers. A click asks for the spec to be turned over. Of two messages that are
// on their way at once the server hears the later one: so each carries every click that it has not answered yet.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".board");
  const clicks = (root.clicks ?? []).filter((click) => click.at > data.heard);
  root.clicks = clicks;
  const turn = (spec) => {
    clicks.push({ at: Math.max(Date.now(), data.heard + 1, (clicks.at(-1)?.at ?? 0) + 1), spec });
    setTriggerValue("turned", [...clicks]);
  };
  root.replaceChildren();
  for (const row of data.rows) {
    const side = document.createElement("div");
    side.className = "side";
    side.textContent = row.label;
    const cells = document.createElement("div");
    cells.className = "cells";
    for (const cell of row.cells) {
      const button = document.createElement("button");
      button.className = "cell";
      button.textContent = cell.label;
      button.style.setProperty("--kind", cell.colour);
      button.title = cell.title;
      button.setAttribute("aria-label", cell.title);
      button.setAttribute("aria-pressed", String(cell.off));
      button.onclick = () => turn(cell.spec);
      cells.append(button);
    }
    root.append(side, cells);
  }
}
