/** Elements, made without any markup in text: names from data can be nothing but text. */

type Attributes = Record<string, string | number | boolean | null>;

const SVG = "http://www.w3.org/2000/svg";

function filled<E extends Element>(element: E, attributes: Attributes, children: (Node | string)[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

export function html<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(name), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

export function swatch(color: string): SVGElement {
  const square = svg("rect", { width: 10, height: 10, rx: 2.5, fill: color });
  return svg("svg", { class: "swatch", viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true" }, square);
}

export const ICONS = {
  play: "M4 2.5v11l9-5.5z",
  pause: "M3.5 2.5h3v11h-3zM9.5 2.5h3v11h-3z",
  next: "M3 2.5v11l7-5.5zM10.5 2.5h2.5v11h-2.5z",
  back: "M13 2.5v11l-7-5.5zM3 2.5h2.5v11H3z",
  last: "M1.5 3v10l5.5-5zM7 3v10l5.5-5zM12.5 3h2v10h-2z",
  first: "M14.5 3v10L9 8zM9 3v10L3.5 8zM1.5 3h2v10h-2z",
  plus: "M7 3h2v4h4v2H9v4H7V9H3V7h4z",
  minus: "M3 7h10v2H3z",
  reset: "M8 3a5 5 0 1 1-4.7 3.3l1.9.7A3 3 0 1 0 8 5v2.5L4 4l4-3.5z",
};

export type Icon = keyof typeof ICONS;

export function icon(name: Icon): SVGElement {
  return svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

export function button(label: string, name: Icon, press: () => void, more = ""): HTMLButtonElement {
  const made = html(
    "button",
    { type: "button", class: `button icon ${more}`.trim(), "aria-label": label, title: label },
    icon(name),
  );
  made.addEventListener("click", press);
  return made;
}

/** What draws once a frame of the screen, however often it is called. */
export function oncePerFrame(draw: () => void): () => void {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      draw();
    });
  };
}

export function plural(count: number, word: string): string {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}
