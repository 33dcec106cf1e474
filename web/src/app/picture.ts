/** A map as a file: SVG with the points as an image in it, or that SVG as PNG. */

import { svg } from "../dom";
import type { Atlas } from "./atlas";
import { table } from "./state";

const SHARPNESS = 2; // pixels of a PNG per pixel of the page
/** Properties that the stylesheet of the page gives to marks. */
const PROPERTIES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "font-size",
  "font-weight",
  "font-family",
];

function vector(atlas: Atlas): SVGSVGElement {
  const { element, overlay } = atlas.stage;
  const { left, top, width, height } = atlas.inner;
  const [wide, high] = [element.clientWidth, element.clientHeight];
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim() || "#ffffff";
  const image = svg("image", { x: left, y: top, width, height, href: atlas.stage.canvas.toDataURL("image/png") });
  const marks = [...overlay.children].map((child) => styled(child));
  return svg(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width: wide, height: high, viewBox: `0 0 ${wide} ${high}` },
    svg("rect", { width: wide, height: high, fill: paper }),
    image,
    ...marks,
  );
}

/** A copy of an element with its style as attributes. */
function styled(original: Element): Element {
  const copy = original.cloneNode(false) as Element;
  const style = getComputedStyle(original);
  if (original.localName !== "svg" && original.localName !== "g") {
    for (const name of PROPERTIES) copy.setAttribute(name, style.getPropertyValue(name));
  }
  copy.removeAttribute("class");
  for (const child of original.childNodes) copy.append(child instanceof Element ? styled(child) : child.cloneNode());
  return copy;
}

/** Save a file. */
export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function nameOf(ending: string): string {
  return `${(table.value?.name ?? "map").replace(/\.[^.]*$/, "")}-map.${ending}`;
}

export function saveVector(atlas: Atlas): void {
  const text = new XMLSerializer().serializeToString(vector(atlas));
  download(new Blob([text], { type: "image/svg+xml" }), nameOf("svg"));
}

export async function savePicture(atlas: Atlas): Promise<void> {
  const drawn = vector(atlas);
  const [wide, high] = [Number(drawn.getAttribute("width")), Number(drawn.getAttribute("height"))];
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(drawn))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [SHARPNESS * wide, SHARPNESS * high];
  const context = canvas.getContext("2d")!;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((content) => content && download(content, nameOf("png")), "image/png");
}
