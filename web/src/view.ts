/** Which part of a plane is seen: moved and magnified by pointer, wheel and keys. */

import type { Box } from "./data";
import type { Margins } from "./plane";

const CLOSEST = 1 / 400; // of what there is to see
const KEYS: Record<string, (view: View) => void> = {
  ArrowLeft: (view) => view.move(-0.1, 0),
  ArrowRight: (view) => view.move(0.1, 0),
  ArrowUp: (view) => view.move(0, 0.1),
  ArrowDown: (view) => view.move(0, -0.1),
  "+": (view) => view.zoom(0.8),
  "=": (view) => view.zoom(0.8),
  "-": (view) => view.zoom(1.25),
  "0": (view) => view.reset(),
};

export class View {
  box: Box;

  constructor(
    private readonly element: HTMLElement,
    private readonly margins: Margins,
    readonly whole: () => Box,
    private readonly changed: () => void,
  ) {
    this.box = whole();
  }

  /** By shares of what is seen. */
  move(right: number, up: number): void {
    const [x0, x1, y0, y1] = this.box;
    const [dx, dy] = [right * (x1 - x0), up * (y1 - y0)];
    this.look([x0 + dx, x1 + dx, y0 + dy, y1 + dy]);
  }

  /** To a multiple of what is seen, about a place in it; false where that is as far as it goes. */
  zoom(factor: number, x = 0.5, y = 0.5): boolean {
    const [x0, x1, y0, y1] = this.box;
    const all = this.whole();
    const share = (x1 - x0) / (all[1] - all[0]);
    const by = Math.min(1, Math.max(CLOSEST, share * factor)) / share;
    if (Math.abs(by - 1) < 1e-9) return false;
    const [cx, cy] = [x0 + x * (x1 - x0), y0 + y * (y1 - y0)];
    this.look([cx + (x0 - cx) * by, cx + (x1 - cx) * by, cy + (y0 - cy) * by, cy + (y1 - cy) * by]);
    return true;
  }

  reset(): void {
    this.look(this.whole());
  }

  look(box: Box): void {
    this.box = box;
    this.changed();
  }

  keys(): void {
    this.element.addEventListener("keydown", (event) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
      if (!act || event.target !== this.element) return;
      event.preventDefault();
      act(this);
    });
  }

  /** Wheel, double click and dragging, where `moves` says that a pointer moves the view. */
  pointers(moves: (event: PointerEvent) => boolean = () => true): void {
    this.element.addEventListener(
      "wheel",
      (event) => {
        const [x, y] = this.place(event);
        if (this.zoom(1.0015 ** Math.max(-400, Math.min(400, event.deltaY)), x, y)) event.preventDefault();
      },
      { passive: false },
    );
    this.element.addEventListener("dblclick", () => this.reset());
    this.drag(this.element, moves);
  }

  /** One pointer moves the map; two change its scale. */
  private drag(element: HTMLElement, moves: (event: PointerEvent) => boolean): void {
    const held = new Map<number, [number, number]>();
    const span = () => {
      const [a, b] = [...held.values()];
      return a && b ? Math.hypot((a[0] - b[0]) * element.clientWidth, (a[1] - b[1]) * element.clientHeight) : 0;
    };
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !moves(event)) return;
      element.setPointerCapture(event.pointerId);
      element.classList.add("held");
      held.set(event.pointerId, this.place(event));
    });
    element.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId);
      if (!before) return;
      const [apart, now] = [span(), this.place(event)];
      held.set(event.pointerId, now);
      if (held.size === 1) this.move(before[0] - now[0], before[1] - now[1]);
      else if (apart && span()) this.zoom(apart / span(), ...now);
    });
    const release = (event: PointerEvent) => {
      held.delete(event.pointerId);
      element.classList.toggle("held", held.size > 0);
    };
    element.addEventListener("pointerup", release);
    element.addEventListener("pointercancel", release);
  }

  /** Where a pointer is, as shares of the plane from the left and from below. */
  place(event: MouseEvent): [number, number] {
    const all = this.element.getBoundingClientRect();
    const { top, right, bottom, left } = this.margins;
    const width = all.width - left - right;
    const height = all.height - top - bottom;
    return [(event.clientX - all.left - left) / width, 1 - (event.clientY - all.top - top) / height];
  }
}
