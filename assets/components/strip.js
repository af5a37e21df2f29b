// One row of cells a model, a cell a layer, coloured by its kind of mixer. A click picks the model and the layer.
function element(tag, name, text) {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  return made;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".strip");
  root.replaceChildren();
  for (const model of data.models) {
    root.append(element("div", model.here ? "name here" : "name", model.title));
    const cells = element("div", "cells", "");
    cells.setAttribute("role", "group");
    cells.setAttribute("aria-label", `Layers of ${model.title}`);
    model.cells.forEach((cell, layer) => {
      const button = element("button", `cell ${cell.off}`, model.cells.length > 40 ? "" : String(layer));
      button.style.setProperty("--kind", cell.colour);
      button.title = cell.title;
      button.setAttribute("aria-label", cell.title);
      button.setAttribute("aria-pressed", String(model.here && layer === data.layer));
      button.onclick = () => setTriggerValue("picked", { model: model.name, layer });
      cells.append(button);
    });
    root.append(cells);
  }
  const kinds = element("div", "kinds", "");
  for (const kind of data.kinds) {
    const entry = element("span", "kind", "");
    const swatch = element("span", `swatch ${kind.off}`, "");
    swatch.style.setProperty("--kind", kind.colour);
    entry.append(swatch, document.createTextNode(kind.label));
    kinds.append(entry);
  }
  root.append(kinds);
}
