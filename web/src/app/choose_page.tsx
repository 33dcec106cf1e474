/** How many clusters? The criteria as they are computed, their votes, and the clusters of any K at a click. */

import { signal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { type Choice, get, type Result, type Run, send } from "./api";
import { loadLabels } from "./arrays";
import { Fault, Icon, Section, useLoaded } from "./controls";
import { CriterionCharts, criteriaOf } from "./criteria";
import { AlgorithmChoice, chosenAlgorithm, EffortChoice, Running, start, TableFacts } from "./fit_page";
import { MapPanel } from "./map_panel";
import { active, attempt, criteria, current, go, preparation, refresh, runs } from "./state";

const range = signal<[number, number]>([2, 10]);

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
        <EffortChoice />
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
  const charts = useMemo(() => criteriaOf(live, choice), [live, choice]);
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
      <CriterionCharts criteria={charts} k={k} pick={setPicked} />
      {choice && <Votes choice={choice} k={k} pick={setPicked} />}
      {choice && k !== null && <Preview run={run} k={k} />}
    </>
  );
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
