/** How many clusters? The criteria as they are computed, their votes, and the clusters of any K at a click. */

import { signal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { svg } from "../dom";
import { shortened } from "../formatting";
import { Plane } from "../plane";
import { type Choice, type CriterionEvent, get, type Result, type Run, send } from "./api";
import { loadLabels } from "./arrays";
import { Fault, Icon, Place, Section, Select, useLoaded } from "./controls";
import { AlgorithmChoice, chosenAlgorithm, draft, Running, set, start, TableFacts } from "./fit_page";
import { MapPanel } from "./map_panel";
import { active, attempt, criteria, current, go, preparation, refresh, runs, workspace } from "./state";

const range = signal<[number, number]>([2, 10]);
const [WIDTH, HEIGHT] = [300, 176];
const MARGINS = { top: 12, right: 12, bottom: 26, left: 52 };

/** The run whose criteria are shown: the one that runs, the current one, or the last that has some. */
function chosenRun(): Run | null {
  const running = active.value;
  if (running && (running.kind === "choose" || criteria.value[running.id])) return running;
  if (current.value?.choice) return current.value;
  const parent = runs.value.find((run) => run.id === current.value?.parent && run.choice);
  return parent ?? runs.value.findLast((run) => run.choice) ?? null;
}

export function ChoosePage() {
  const run = chosenRun();
  return (
    <>
      <div class="side-panel">
        <TableFacts />
        <Settings />
      </div>
      <div class="work choose">
        {active.value && <Running run={active.value} />}
        {run ? <Criteria key={run.id} run={run} /> : <Nothing />}
      </div>
    </>
  );
}

function Nothing() {
  return (
    <div class="empty">
      <p>Compare several numbers of clusters. Each criterion votes for one; the votes are combined.</p>
      <p class="muted">Set a range on the left and press Compare.</p>
    </div>
  );
}

function Settings() {
  const [low, high] = range.value;
  const chosen = chosenAlgorithm();
  const isBlocked = !chosen || active.value !== null || preparation.value?.error != null || chosen.takes_k === false;
  const edge = (label: string, side: 0 | 1) => (
    <label class="edge">
      {label}
      <input
        type="number"
        class="number-input"
        min={1}
        max={60}
        value={range.value[side]}
        onInput={(event) => {
          const next: [number, number] = [...range.value];
          next[side] = Number(event.currentTarget.value);
          range.value = next;
        }}
      />
    </label>
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void start("choose", [low, high]);
      }}
    >
      <Section title="Algorithm">
        <AlgorithmChoice />
        {chosen && !chosen.takes_k && <p class="help">This algorithm finds the number of clusters itself.</p>}
      </Section>
      <Section title="Numbers of clusters">
        <div class="row">
          {edge("from", 0)}
          {edge("to", 1)}
        </div>
        <Fault field="k" />
        <Select
          label="Effort"
          value={draft.value.budget}
          field="budget"
          options={workspace.value!.budgets}
          onChange={(budget) => set({ budget })}
        />
      </Section>
      <div class="go">
        <button type="submit" class="button main" disabled={isBlocked}>
          <Icon name="play" /> Compare
        </button>
        <Fault field="run" />
      </div>
    </form>
  );
}

function Criteria({ run }: { run: Run }) {
  const live = criteria.value[run.id] ?? [];
  const { value: result } = useLoaded(
    () => (run.status === "done" ? get<Result>(`/api/runs/${run.id}`) : null),
    [run.id, run.status],
  );
  const choice = result?.choice ?? null;
  const [picked, setPicked] = useState<number | null>(null);
  const charts = useMemo(() => merged(live, choice), [live, choice]);
  const k = picked ?? choice?.recommended ?? null;
  return (
    <>
      {choice && (
        <div class="verdict">
          <p class="heading">{choice.heading}</p>
          <p>{choice.reason}</p>
        </div>
      )}
      {charts.length === 0 && <p class="muted">The criteria appear here as they are computed.</p>}
      <div class="charts">
        {charts.map((one) => (
          <CriterionChart key={one.criterion} criterion={one} k={k} pick={setPicked} />
        ))}
      </div>
      {choice && <Votes choice={choice} k={k} pick={setPicked} />}
      {choice && k !== null && <Preview run={run} k={k} />}
    </>
  );
}

/** The charts of a run that has ended, or those that events have brought so far. */
function merged(live: CriterionEvent[], choice: Choice | null): CriterionEvent[] {
  if (!choice) return live;
  const known = new Map(live.map((one) => [one.criterion, one]));
  const skipped = new Set(["k", "support"]);
  const names = choice.table.length ? Object.keys(choice.table[0]!).filter((name) => !skipped.has(name)) : [];
  const votes = new Map(choice.votes.map((vote) => [vote.criterion, vote]));
  const tabled = names
    .filter((name) => choice.table.some((row) => typeof row[name] === "number"))
    .map((name): CriterionEvent => {
      const vote = votes.get(name);
      return {
        run: "",
        criterion: name,
        name: known.get(name)?.name ?? name,
        k: vote?.k ?? null,
        ks: choice.table.map((row) => row.k),
        values: choice.table.map((row) => row[name] ?? null),
        note: vote?.note ?? null,
      };
    });
  return live.length >= tabled.length ? live : tabled;
}

interface ChartProps {
  criterion: CriterionEvent;
  k: number | null;
  pick: (k: number) => void;
}

function CriterionChart({ criterion, k, pick }: ChartProps) {
  const { ks, values, name, note } = criterion;
  return (
    <figure class="criterion">
      <figcaption>
        <strong>{name}</strong>
        {criterion.k !== null && <span class="muted"> votes for {criterion.k}</span>}
      </figcaption>
      <Place
        class="plot"
        inputs={[criterion, k]}
        make={(element) => {
          element.replaceChildren(lineChart(criterion, k, pick));
          return undefined;
        }}
      />
      <table class="unseen">
        <caption>{name}</caption>
        <tbody>
          {ks.map((one, i) => (
            <tr key={one}>
              <th>{one}</th>
              <td>{values[i] === null ? "" : shortened(values[i]!)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {note && <p class="muted">{note}</p>}
    </figure>
  );
}

/** A line over K whose points are buttons. */
function lineChart(
  { ks, values, k: vote, name }: CriterionEvent,
  k: number | null,
  pick: (k: number) => void,
): SVGElement {
  const points = ks.flatMap((one, i): [number, number][] => (values[i] === null ? [] : [[one, values[i]!]]));
  const heights = points.map(([, value]) => value);
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const pad = 0.08 * (high - low || Math.abs(high) || 1);
  const plane = new Plane(
    WIDTH,
    HEIGHT,
    [Math.min(...ks) - 0.4, Math.max(...ks) + 0.4, low - pad, high + pad],
    MARGINS,
  );
  const chart = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "group",
    "aria-label": `${name} by number of clusters`,
  });
  chart.append(
    plane.yAxis(""),
    svg("line", { class: "axis", x1: MARGINS.left, x2: plane.right, y1: plane.bottom, y2: plane.bottom }),
  );
  if (vote !== null)
    chart.append(
      svg("line", { class: "choice", x1: plane.x(vote), x2: plane.x(vote), y1: MARGINS.top, y2: plane.bottom }),
    );
  chart.append(svg("path", { class: "curve ink", d: plane.path(points) }));
  const stride = Math.ceil(ks.length / 12);
  for (const [i, [one, value]] of points.entries()) {
    const [x, y] = [plane.x(one), plane.y(value)];
    const wide = (plane.right - MARGINS.left) / ks.length;
    const label = `K = ${one}: ${shortened(value)}`;
    const group = svg(
      "g",
      {
        class: one === k ? "point on" : "point",
        role: "button",
        tabindex: i === 0 ? 0 : -1,
        "aria-label": label,
        "data-tip": label,
        "data-stop": true,
        "data-k": one,
      },
      svg("rect", { class: "hit", x: x - wide / 2, y: MARGINS.top, width: wide, height: plane.bottom - MARGINS.top }),
      svg("circle", { cx: x, cy: y, r: one === k ? 5.5 : 3.5 }),
    );
    if (i % stride === 0)
      chart.append(svg("text", { class: "tick-text", x, y: plane.bottom + 17, "text-anchor": "middle" }, String(one)));
    group.addEventListener("click", () => pick(one));
    chart.append(group);
  }
  chart.addEventListener("keydown", (event) => {
    const stops = [...chart.querySelectorAll<SVGElement>("[data-stop]")];
    const from = stops.indexOf(event.target as SVGElement);
    const to = stops[from + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0)];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick(points[from]![0]);
    } else if (to && to !== stops[from]) {
      event.preventDefault();
      to.focus();
    }
  });
  return chart;
}

function Votes({ choice, k, pick }: { choice: Choice; k: number | null; pick: (k: number) => void }) {
  const counts = choice.ks.map((one) => choice.votes.filter((vote) => vote.k === one));
  return (
    <section class="group" aria-label="Votes">
      <h2>Votes</h2>
      <div class="votes">
        {choice.ks.map((one, i) => (
          <button
            key={one}
            type="button"
            class={`vote ${one === choice.recommended ? "best" : ""}`}
            aria-pressed={one === k}
            title={counts[i]!.map(({ criterion }) => criterion).join(", ") || "no vote"}
            onClick={() => pick(one)}
          >
            <span class="stack" aria-hidden="true">
              {counts[i]!.map(({ criterion }) => (
                <i key={criterion} />
              ))}
            </span>
            <strong>{one}</strong>
            <span class="unseen">clusters, {counts[i]!.length} votes</span>
          </button>
        ))}
      </div>
      <p class="help">Click a K, here or in a chart, to see its clusters.</p>
    </section>
  );
}

/** The clusters of one K of the sweep, on the map. */
function Preview({ run, k }: { run: Run; k: number }) {
  const { value, error } = useLoaded(() => loadLabels(run, k), [run.id, k]);
  const open = async () => {
    const made = await attempt("open-k", () => send<{ id: string }>("POST", `/api/runs/${run.id}/open-k`, { k }));
    await refresh();
    if (made) go({ page: "clusters", cluster: null });
  };
  return (
    <section class="preview" aria-label={`Clusters for K = ${k}`}>
      <div class="title">
        <h2>K = {k}</h2>
        <button type="button" class="button main" onClick={() => void open()}>
          Use K = {k}
        </button>
      </div>
      <Fault field="open-k" />
      {error && <p class="muted">{error}</p>}
      <MapPanel run={null} labels={value} names={value?.names ?? []} colors={value?.colors ?? []} />
    </section>
  );
}
