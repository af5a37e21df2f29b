// Every head's map as a small picture: one byte a cell, drawn here, so that a layer of 48 heads stays small on the wire.
function bytes(text) {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".grid");
  root.replaceChildren();
  const colours = bytes(data.colours);
  for (const map of data.maps) {
    const button = document.createElement("button");
    button.className = map.off ? "map off" : "map";
    button.title = map.title;
    button.setAttribute("aria-pressed", String(map.head === data.head));
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = data.size;
    const image = new ImageData(data.size, data.size);
    bytes(map.cells).forEach((value, i) => {
      image.data.set(colours.subarray(3 * value, 3 * value + 3), 4 * i);
      image.data[4 * i + 3] = 255;
    });
    canvas.getContext("2d").putImageData(image, 0, 0);
    const label = document.createElement("div");
    label.textContent = map.label;
    button.append(canvas, label);
    button.onclick = () => setTriggerValue("picked", map.head);
    root.append(button);
  }
}
