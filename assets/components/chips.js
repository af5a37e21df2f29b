// The sentence as a row of token chips. All text goes in through textContent: a visitor's text is data, never markup.
const SPACES = new Set(["␣", "⏎", "⇥", "␍", "⍽", "▭"]);

function label(chip, text) {
  for (const char of text) {
    const part = document.createElement("span");
    part.textContent = char;
    if (SPACES.has(char)) part.className = "space";
    chip.append(part);
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".chips");
  root.replaceChildren();
  const row = document.createElement("div");
  row.className = "row";
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", "Tokens of the sentence; a click moves the focus");
  data.tokens.forEach((token, place) => {
    const chip = document.createElement("button");
    chip.className = token.special ? "chip special" : "chip";
    chip.title = token.title;
    chip.setAttribute("aria-pressed", String(place === data.focus));
    const number = document.createElement("span");
    number.className = "place";
    number.textContent = !token.note ? String(place) : `${place} · ${token.note}`;
    chip.append(number);
    label(chip, token.label ?? "");
    if (token.colour) chip.style.background = token.colour;
    chip.onclick = () => setTriggerValue("focus", place);
    row.append(chip);
  });
  root.append(row);
  if (data.legend !== "") {
    const legend = document.createElement("div");
    legend.className = "legend";
    legend.textContent = data.legend;
    root.append(legend);
  }
  const pressed = row.querySelector('[aria-pressed="true"]');
  if (pressed && row.scrollHeight > row.clientHeight) row.scrollTop = pressed.offsetTop - row.offsetTop - 40;
}
