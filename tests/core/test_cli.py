"""The same from a shell: `python -m core`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import main
from core.model import Model
from tests.reference import save, tiny_tokenizer
from tests.tiny import VARIANTS, tiny

ROOT = Path(__file__).parents[2]
TEXT = "Bob 木"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("models") / "tiny"
    return str(save(tiny("granite").reference, VARIANTS["granite"], target, tiny_tokenizer(256)))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    return json.loads(out)


def test_json_holds_model_tokens_and_top_and_nothing_else(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--model", folder, TEXT)
    run = tiny("granite").model.run(TEXT)
    assert list(found) == ["model", "tokens", "top"]
    assert found["model"] == folder
    assert [list(token) for token in found["tokens"]] == [["id", "text"]] * 7
    assert [token["id"] for token in found["tokens"]] == run.ids
    assert [token["text"] for token in found["tokens"]] == ["B", "o", "b", " ", "⟨E6⟩", "⟨9C⟩", "⟨A8⟩"]
    assert [list(each) for each in found["top"]] == [["id", "text", "p"]] * 10
    assert [each["id"] for each in found["top"]] == [each.id for each in run.top(10)]
    assert [each["p"] for each in found["top"]] == pytest.approx([each.p for each in run.top(10)])


def test_json_with_a_lens_has_one_entry_a_layer_for_the_words_first_token(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, "--model", folder, "--lens", " xyz", TEXT)
    model = tiny("granite").model
    run = model.run(TEXT, record=["residual.after"])
    assert list(found) == ["model", "tokens", "top", "lens"]
    assert [list(row) for row in found["lens"]] == [["layer", "mixer", "p", "rank", "top"]] * 4
    assert [row["layer"] for row in found["lens"]] == [0, 1, 2, 3]
    assert [row["mixer"] for row in found["lens"]] == ["mamba2", "attention", "mamba2", "mamba2"]
    space = model.tokenizer.first(" ")
    for row, stream in zip(found["lens"], run.values["residual.after"].values(), strict=True):
        p = model.unembed(stream[None, -1:])[0, 0].softmax(-1)
        assert row["p"] == pytest.approx(p[space].item(), rel=1e-4)
        assert row["rank"] == int((p > p[space]).sum()) + 1
        assert row["top"] == model.tokenizer.text(int(p.argmax()))


def test_top_says_how_many(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(printed(capsys, "--model", folder, "--top", "3", TEXT)["top"]) == 3
    assert len(printed(capsys, "--model", folder, "--top", "5000", TEXT)["top"]) == 300


def test_off_may_be_given_more_than_once(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--model", folder, "--off", "mamba2:2-", "--off", "head:1.3", TEXT)
    right = tiny("granite").model.run(TEXT, off=["mamba2:2-", "head:1.3"])
    assert [each["p"] for each in found["top"]] == pytest.approx([each.p for each in right.top(10)], rel=1e-4)
    assert found["top"] != printed(capsys, "--model", folder, TEXT)["top"]


def test_the_lens_sees_what_is_off(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain = printed(capsys, "--model", folder, "--lens", "a", TEXT)["lens"]
    off = printed(capsys, "--model", folder, "--lens", "a", "--off", "mixer:2", TEXT)["lens"]
    assert off[1] == plain[1]
    assert off[2] != plain[2]


def test_without_json_a_person_reads_lines(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", folder, "--top", "2", "--lens", "a", "a b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    top = tiny("granite").model.run("a b").top(2)
    assert lines[0] == f'{folder}: 3 tokens: "a" " " "b"'
    assert lines[2].split()[0] == f"{top[0].p:.4f}"
    assert lines[2].split()[1] == json.dumps(top[0].text, ensure_ascii=False)
    assert lines[5].split() == ["layer", "mixer", "p", "rank", "on", "top"]
    assert [line.split()[:2] for line in lines[6:]] == [
        ["0", "mamba2"],
        ["1", "attention"],
        ["2", "mamba2"],
        ["3", "mamba2"],
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "no-such-model", "a"], "There is no model “no-such-model”: give one of smollm2-135m"),
        (["--model", "{folder}", ""], "There is no text yet: type a sentence."),
        (["--model", "{folder}", "--off", "mixer:9", "a"], "“mixer:9” leaves the model: its layers are 0 to 3."),
        (["--model", "{folder}", "--off", "deltanet:*", "a"], "“deltanet:*” switches nothing off"),
        (["--model", "{folder}", "--lens", "", "a"], "The word is empty"),
        (["--model", "{folder}", "x" * 600], "The text is 600 tokens long; tiny takes 512 at most."),
        (["--model", "{folder}/..", "a"], "There is no config.json in "),
    ],
    ids=["model", "no text", "layer", "kind", "word", "too long", "folder"],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(
    folder: str, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main([argument.replace("{folder}", folder) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tokenwalk: ")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: TEXT"),
        (["--top", "0", "a"], "argument --top: “0” is not a number from 1 on"),
        (["--top", "many", "a"], "argument --top: “many” is not a number from 1 on"),
        (["--top", "-3", "a"], "argument --top"),
        (["--depth", "3", "a"], "unrecognized arguments: --depth"),
        (["a", "b"], "unrecognized arguments: b"),
    ],
    ids=["nothing", "top 0", "top many", "top -3", "unknown option", "two texts"],
)
def test_bad_usage_is_one_line_on_stderr_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"tokenwalk: {said}")
    assert err.count("\n") == 1


def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "core", *arguments],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        timeout=300,
        check=False,
    )


def test_from_a_real_shell_smollm2_answers_paris(smollm2: Model) -> None:
    done = shell("--json", "--top", "1", "--lens", " Paris", "The capital of France is")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["model"] == "smollm2-135m"
    assert found["top"][0]["text"] == " Paris"
    assert found["top"][0]["p"] == pytest.approx(0.7725, abs=1e-4)
    assert len(found["lens"]) == 30
    assert found["lens"][-1] | {"p": 0} == {"layer": 29, "mixer": "attention", "p": 0, "rank": 1, "top": " Paris"}
    assert found["lens"][-1]["p"] == pytest.approx(0.7725, abs=1e-4)


def test_from_a_real_shell_bad_input_is_one_line_and_exit_2(folder: str) -> None:
    done = shell("--model", folder, "--off", "nonsense", "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tokenwalk: “nonsense” is not a part")
    assert done.stderr.count("\n") == 1
