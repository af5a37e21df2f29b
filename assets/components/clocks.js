// RoPE as clocks: a dial a frequency band, drawn here at every frame, so that a slider turns all hands at once.
const RADIUS = 21, CELL = 56, LABEL = 15;

function slider(root, label, most, value) {
  const name = document.createElement("label");
  name.textContent = label;
  const input = document.createElement("input");
  Object.assign(input, { type: "range", min: 0, max: most, step: 1, value });
  input.setAttribute("aria-label", label);
  const shown = document.createElement("output");
  root.append(name, input, shown);
  return { input, shown };
}

// The product of query and key, each turned by its position: it depends on the gap alone.
function score(bands, query, key, m, n) {
  return bands.reduce((sum, band, i) => {
    const [a, b] = query[i], [c, d] = key[i];
    const q = m * band.radians, k = n * band.radians;
    const qx = a * Math.cos(q) - b * Math.sin(q), qy = b * Math.cos(q) + a * Math.sin(q);
    const kx = c * Math.cos(k) - d * Math.sin(k), ky = d * Math.cos(k) + c * Math.sin(k);
    return sum + qx * kx + qy * ky;
  }, 0);
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".clocks");
  root.replaceChildren();
  const controls = document.createElement("div");
  controls.className = "controls";
  const first = slider(controls, "position of the query", data.most, data.query_at);
  const second = slider(controls, "position of the key", data.most, data.key_at);
  const both = document.createElement("button");
  both.textContent = "move both by 1";
  controls.append(both);
  const canvas = document.createElement("canvas");
  canvas.className = "dials";
  canvas.setAttribute("role", "img");
  const line = document.createElement("div");
  line.className = "score";
  root.append(controls, canvas, line);
  const style = getComputedStyle(root);
  const text = style.color, accent = style.getPropertyValue("--st-primary-color") || "#c2255c";

  let wanted = true, alive = true;
  function draw() {
    if (!alive || !root.isConnected) return;
    requestAnimationFrame(draw);
    const width = root.clientWidth;
    if (!width || (!wanted && canvas.clientWidth === Math.round(canvas.width / devicePixelRatio))) return;
    wanted = false;
    const m = Number(first.input.value), n = Number(second.input.value);
    const columns = Math.max(1, Math.floor(width / CELL)), rows = Math.ceil(data.bands.length / columns);
    const height = rows * (CELL + LABEL);
    canvas.width = width * devicePixelRatio;
    canvas.height = height * devicePixelRatio;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(devicePixelRatio, devicePixelRatio);
    pen.font = "10px system-ui, sans-serif";
    pen.textAlign = "center";
    data.bands.forEach((band, i) => {
      const x = (i % columns) * CELL + CELL / 2, y = Math.floor(i / columns) * (CELL + LABEL) + RADIUS + 3;
      pen.lineWidth = 1;
      pen.strokeStyle = data.colours[band.speed];
      pen.beginPath(); pen.arc(x, y, RADIUS, 0, 7); pen.stroke();
      for (const [position, colour, reach, thick] of [[n, text, 0.72, 1.5], [m, accent, 0.95, 2.5]]) {
        const angle = position * band.radians - Math.PI / 2;
        pen.strokeStyle = colour; pen.lineWidth = thick;
        pen.beginPath(); pen.moveTo(x, y);
        pen.lineTo(x + reach * RADIUS * Math.cos(angle), y + reach * RADIUS * Math.sin(angle)); pen.stroke();
      }
      pen.fillStyle = text;
      pen.fillText(band.label, x, y + RADIUS + 12);
    });
    first.shown.textContent = m;
    second.shown.textContent = n;
    const value = score(data.bands, data.query, data.key, m, n);
    line.textContent = `Gap ${m - n}: this query (coloured hands) and key (thin hands) match with a score of ${value.toFixed(3)}.`
      .replaceAll(/-(?=\d)/g, "−");
    canvas.setAttribute("aria-label", line.textContent);
  }
  const again = () => { wanted = true; };
  first.input.oninput = second.input.oninput = again;
  both.onclick = () => {
    if (Number(first.input.value) < data.most && Number(second.input.value) < data.most) {
      first.input.value = Number(first.input.value) + 1;
      second.input.value = Number(second.input.value) + 1;
      again();
    }
  };
  requestAnimationFrame(draw);
  return () => { alive = false; };
}
