// A row of switches for each half of the layers. A click asks for the spec to be turned over.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".board");
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
      button.onclick = () => setTriggerValue("turned", cell.spec);
      cells.append(button);
    }
    root.append(side, cells);
  }
}
