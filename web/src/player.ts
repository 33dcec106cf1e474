/** Plays a fit step by step. */

import { Curve } from "./curve";
import type { Ellipse, Film, FilmFrame } from "./data";
import { GREY } from "./density";
import { button, html, icon, plural, svg } from "./dom";
import { shortened } from "./formatting";
import { MANY, type Plane } from "./plane";
import { type Cloud, packed } from "./raster";
import { Sizes } from "./sizes";
import { Stage, type StageOptions } from "./stage";
import { View } from "./view";

const SPEEDS = [0.5, 1, 2, 4, 8, 16, 30]; // steps a second
const GLIDE = 0.6; // of a step's time, that centres take to their new places
const NAMES: Record<string, string> = { start: "start", assign: "assign", update: "update", E: "E step", M: "M step" };

export interface PlayerOptions extends StageOptions {
  alone?: boolean; // the page is this player, so that keys are its own wherever the focus is, and it starts by itself
  movable?: boolean; // the view can be moved and magnified
}

export class Player {
  readonly live = html("div", { class: "live" });
  private readonly stage: Stage;
  private readonly cloud: Cloud;
  private readonly curve: Curve;
  private readonly sizes: Sizes;
  private readonly caption = html("p", { class: "caption", "aria-live": "polite" });
  private readonly value = html("div", { class: "value" });
  private readonly where = html("span", { class: "where" });
  private readonly toggle = button("Play", "play", () => (this.playing ? this.pause() : this.play()), "main");
  private readonly scrub: HTMLInputElement;
  private readonly calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  private index = 0;
  private painted: Uint8Array | Uint16Array | null | undefined; // whose colours the points have
  private readonly view: View;
  private speed = 2;
  private playing = false;
  private due = 0;
  private readonly over = new AbortController();

  constructor(
    figure: HTMLElement,
    private readonly data: Film,
    { alone = false, movable = false, ...options }: PlayerOptions = {},
  ) {
    this.cloud = { x: data.x, y: data.y, color: new Uint32Array(data.x.length).fill(GREY) };
    const margins = { top: 10, right: 12, bottom: 46, left: data.axes.length > 1 ? 62 : 12 };
    this.stage = new Stage(margins, () => this.draw(1), options);
    this.view = new View(
      this.stage.element,
      margins,
      () => data.box,
      () => this.draw(1),
    );
    if (movable) {
      this.stage.element.classList.add("movable");
      this.view.pointers();
    }
    this.curve = new Curve(data);
    this.sizes = new Sizes(data);
    const last = data.frames.length - 1;
    this.scrub = html("input", { type: "range", class: "scrub", min: 0, max: last, value: 0, "aria-label": "Step" });
    this.live.append(this.stage.element, this.side(), this.caption, this.transport());
    figure.prepend(this.live);
    this.listen(alone ? document : this.live);
    this.stage.fit();
    this.show(0);
    if (alone && !this.calm && last > 0) this.play();
  }

  play(): void {
    if (this.index >= this.data.frames.length - 1) this.show(0);
    this.set(true);
    this.due = performance.now() + 1000 / this.speed;
    requestAnimationFrame((now) => this.tick(now));
  }

  pause(): void {
    this.set(false);
    this.draw(1);
  }

  /** To a step, at once. */
  show(index: number): void {
    this.index = Math.max(0, Math.min(this.data.frames.length - 1, index));
    const frame = this.frame();
    this.caption.textContent = frame.caption;
    this.value.textContent = frame.objective === null ? "\u2013" : shortened(frame.objective);
    this.where.textContent = `${this.index + 1} / ${this.data.frames.length}`;
    this.scrub.value = String(this.index);
    const step = NAMES[frame.step] ?? frame.step;
    this.scrub.setAttribute("aria-valuetext", `iteration ${frame.iteration}, ${step}`);
    this.curve.show(this.index);
    this.sizes.show(frame.sizes);
    this.paint();
    this.draw(this.playing && !this.calm ? 0 : 1);
  }

  private step(by: number): void {
    this.set(false);
    this.show(this.index + by);
  }

  private tick(now: number): void {
    if (!this.playing) return;
    const span = 1000 / this.speed;
    if (now >= this.due) {
      if (this.index >= this.data.frames.length - 1) this.pause();
      else this.show(this.index + 1);
      this.due = Math.max(this.due + span, now);
    } else if (!this.calm) {
      const passed = 1 - (this.due - now) / span;
      if (passed < GLIDE + 0.1) this.marks(Math.min(1, passed / GLIDE));
    }
    requestAnimationFrame((later) => this.tick(later));
  }

  private set(playing: boolean): void {
    this.playing = playing;
    const label = playing ? "Pause" : "Play";
    this.toggle.replaceChildren(icon(playing ? "pause" : "play"));
    this.toggle.setAttribute("aria-label", label);
    this.toggle.title = label;
    this.caption.setAttribute("aria-live", playing ? "off" : "polite");
  }

  private frame(): FilmFrame {
    return this.data.frames[this.index]!;
  }

  /** Stops, for a page that goes on without it. */
  close(): void {
    this.playing = false;
    this.over.abort();
    this.live.remove();
  }

  /** Colours of the points as this frame, or the last before it that says so, has them. */
  private paint(): void {
    const before = this.data.frames.slice(0, this.index + 1);
    const said = before.findLast((frame) => (this.data.soft ? frame.rgb : frame.labels));
    const source = (said && (this.data.soft ? said.rgb : said.labels)) ?? null;
    if (source === this.painted) return;
    this.painted = source;
    const { color } = this.cloud;
    if (!source) {
      color.fill(GREY);
    } else if (this.data.soft) {
      for (let i = 0, j = 0; i < color.length; i++, j += 3)
        color[i] = (source[j]! << 16) | (source[j + 1]! << 8) | source[j + 2]!;
    } else {
      const table = new Uint32Array(source instanceof Uint8Array ? 256 : 65536).fill(GREY);
      table.set(this.data.colors.map(packed));
      for (let i = 0; i < color.length; i++) color[i] = table[source[i]!]!;
    }
  }

  private draw(passed: number): void {
    this.stage.points(this.cloud, this.data.box, this.stage.plane(this.view.box));
    this.marks(passed);
  }

  /** Centres and ellipses on their way from the frame before: `passed` of it, 1 is there. */
  private marks(passed: number): void {
    const { axes, names, colors, frames } = this.data;
    const plane = this.stage.plane(this.view.box);
    const now = this.frame();
    const old = passed < 1 && this.index > 0 ? frames[this.index - 1]! : now;
    const t = passed * passed * (3 - 2 * passed);
    const centers = now.centers.map((to, j): [number, number] => {
      const from = old.centers[j] ?? to;
      return [mixed(from[0], to[0], t), mixed(from[1], to[1], t)];
    });
    const outlines = (now.ellipses ?? []).map((to, j) => to && between(old.ellipses?.[j] ?? to, to, t));
    const drawn = [
      ...this.trails(plane, centers),
      ...outlines.flatMap((ellipse, j) => (ellipse ? plane.ellipse(ellipse, colors[j]!, names.length > MANY) : [])),
      ...centers.flatMap((center, j) => plane.number(j, center, names[j]!, colors[j]!)),
    ];
    this.stage.marks(plane, [plane.xAxis(axes[0]!), ...(axes[1] ? [plane.yAxis(axes[1])] : [])], drawn);
  }

  /** Where each centre has been. */
  private trails(plane: Plane, centers: [number, number][]): SVGElement[] {
    const before = this.data.frames.slice(0, this.index);
    if (!before.length) return [];
    return centers.map((center, j) => {
      const way = [...before.flatMap((frame) => (frame.centers[j] ? [frame.centers[j]!] : [])), center];
      const moved = way.filter((at, i) => i === 0 || at[0] !== way[i - 1]![0] || at[1] !== way[i - 1]![1]);
      return svg("path", { class: "trail", d: plane.path(moved) });
    });
  }

  private side(): HTMLElement {
    const { objective, frames, rows, shown } = this.data;
    const side = html("div", { class: "side" }, html("h3", {}, "Objective"), this.value);
    side.append(
      html("div", { class: "muted" }, `${objective.name}, ${objective.better} is better`),
      this.curve.element,
    );
    if (frames.some((frame) => frame.bound !== null)) {
      side.append(html("div", { class: "muted key" }, "dashed: the bound from below"));
    }
    side.append(html("h3", {}, "Cluster sizes"), html("div", { class: "list" }, this.sizes.element));
    if (shown < rows)
      side.append(html("p", { class: "muted" }, `showing ${shown.toLocaleString("en")} of ${plural(rows, "row")}`));
    return side;
  }

  private transport(): HTMLElement {
    this.scrub.addEventListener("input", () => this.step(Number(this.scrub.value) - this.index));
    const options = SPEEDS.map((speed) =>
      html("option", { value: speed, selected: speed === this.speed }, `${speed} / s`),
    );
    const speed = html("select", { class: "choice", "aria-label": "Steps a second" }, ...options);
    speed.addEventListener("change", () => {
      this.speed = Number(speed.value);
    });
    return html(
      "div",
      { class: "bar transport", role: "group", "aria-label": "Player" },
      button("First step", "first", () => this.step(-this.data.frames.length)),
      button("Step back", "back", () => this.step(-1)),
      this.toggle,
      button("Step on", "next", () => this.step(1)),
      button("Last step", "last", () => this.step(this.data.frames.length)),
      this.scrub,
      this.where,
      html("label", {}, "speed", speed),
    );
  }

  private listen(target: Document | HTMLElement): void {
    const acts: Record<string, () => void> = {
      " ": () => this.toggle.click(),
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      Home: () => this.step(-this.data.frames.length),
      End: () => this.step(this.data.frames.length),
    };
    const press = (given: Event) => {
      const event = given as KeyboardEvent;
      const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : acts[event.key];
      const on = event.target as HTMLElement;
      if (!act || on.closest("select, input, textarea") || (event.key === " " && on.closest("button, summary, a")))
        return;
      event.preventDefault();
      act();
    };
    target.addEventListener("keydown", press, { signal: this.over.signal });
  }
}

function mixed(from: number, to: number, t: number): number {
  return from + (to - from) * t;
}

/** The angle goes the short way: half a turn makes no difference. */
function between(from: Ellipse, to: Ellipse, t: number): Ellipse {
  const turn = to[4] - from[4];
  const angle = from[4] + (turn - Math.PI * Math.round(turn / Math.PI)) * t;
  return [
    mixed(from[0], to[0], t),
    mixed(from[1], to[1], t),
    mixed(from[2], to[2], t),
    mixed(from[3], to[3], t),
    angle,
  ];
}
