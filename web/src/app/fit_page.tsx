/** Choose an algorithm, fit, and watch it run. */

import { signal } from "@preact/signals";
import { useId, useState } from "preact/hooks";
import { plural } from "../dom";
import { shortened } from "../formatting";
import { PixelDensity } from "../pixel_density";
import { Player } from "../player";
import { type Algorithm, type Option, type Run, send } from "./api";
import { loadFilm } from "./arrays";
import { duration, Fault, Icon, Place, Section, Select, useLoaded } from "./controls";
import { CriterionCharts } from "./criteria";
import { MapPanel } from "./map_panel";
import {
  active,
  attempt,
  cancel,
  clearFaults,
  criteria,
  current,
  go,
  place,
  preparation,
  refresh,
  shown,
  steps,
  table,
  workspace,
} from "./state";

interface Draft {
  algorithm: string;
  k: number;
  automatic: boolean;
  options: Record<string, string>;
  seed: string;
  budget: string;
}

const DRAFT = "coterie-draft";

/** What is set before a fit; a reload keeps it. */
const draft = signal<Draft>({
  ...{ algorithm: "kmeans", k: 3, automatic: true, options: {}, seed: "0", budget: "normal" },
  ...(JSON.parse(sessionStorage.getItem(DRAFT) ?? "{}") as Partial<Draft>),
});
draft.subscribe((value) => sessionStorage.setItem(DRAFT, JSON.stringify(value)));

function set(part: Partial<Draft>): void {
  draft.value = { ...draft.value, ...part };
}

export function chosenAlgorithm(): Algorithm | null {
  const list = workspace.value?.algorithms ?? [];
  return list.find(({ name }) => name === draft.value.algorithm) ?? list[0] ?? null;
}

export async function start(kind: "fit" | "choose", k: number | "auto" | [number, number]): Promise<void> {
  const { algorithm, options, seed, budget } = draft.value;
  const known = chosenAlgorithm()?.options ?? [];
  const given: Record<string, unknown> = {};
  for (const { name, type } of known) {
    const text = options[`${algorithm}.${name}`];
    if (text !== undefined && text !== "") given[name] = type === "int" || type === "float" ? Number(text) : text;
  }
  const body = { kind, algorithm, k, options: given, seed: Number(seed) || 0, budget };
  clearFaults();
  const started = await attempt("run", () => send<{ id: string }>("POST", "/api/runs", body));
  await refresh();
  if (started) document.querySelector(".work")?.scrollIntoView({ block: "nearest" }); // on phones it is below
}

export function FitPage() {
  const run = active.value;
  const last = current.value;
  return (
    <>
      <div class="side-panel">
        <TableFacts />
        <Settings />
      </div>
      <div class="work">
        {run && <Running run={run} />}
        {last?.status === "done" && last.watch && !run ? (
          <Watch key={last.id} run={last} />
        ) : (
          <>
            {!run && !last && <p class="hint">Grey points are the rows. Press Fit to cluster them.</p>}
            <MapPanel key={run?.id} {...(run ? { run: null, centers: steps.value[run.id]?.centers ?? null } : {})} />
          </>
        )}
        {shown.value && !run && <Outcome run={shown.value} />}
      </div>
    </>
  );
}

export function TableFacts() {
  const opened = table.value!;
  const ready = preparation.value;
  return (
    <div class="facts">
      <strong title={opened.name}>{opened.name}</strong>
      <span class="muted">
        {plural(ready?.rows_used || opened.rows, "row")} ·{" "}
        {opened.columns.filter(({ role }) => role === "feature").length} of {plural(opened.columns.length, "column")}
      </span>
      {ready?.error && (
        <p class="fault" role="alert">
          <span>
            {ready.error.message}{" "}
            <button type="button" class="link" onClick={() => go({ page: "data" })}>
              Change this on the Data page
            </button>
          </span>
        </p>
      )}
    </div>
  );
}

export function AlgorithmChoice() {
  const list = workspace.value!.algorithms;
  const chosen = chosenAlgorithm();
  return (
    <>
      <Select
        label="Algorithm"
        value={chosen?.name ?? ""}
        field="algorithm"
        options={list.map(({ name, title, suited }) => ({ value: name, text: title, disabled: suited !== null }))}
        onChange={(algorithm) => set({ algorithm })}
      />
      {chosen && <p class="help">{chosen.summary}</p>}
      {chosen?.suited && <p class="fault">{chosen.suited}</p>}
    </>
  );
}

function Settings() {
  const chosen = chosenAlgorithm();
  const { automatic, k, seed } = draft.value;
  const seedId = useId();
  const isBlocked = !chosen || chosen.suited !== null || active.value !== null || preparation.value?.error != null;
  return (
    <form
      class="settings-form"
      onSubmit={(event) => {
        event.preventDefault();
        void start("fit", chosen?.takes_k === false || automatic ? "auto" : k);
      }}
    >
      <Section title="Algorithm">
        <AlgorithmChoice />
      </Section>
      {chosen?.takes_k !== false && (
        <Section title="Number of clusters">
          <KChoice k={k} automatic={automatic} />
        </Section>
      )}
      <details class="group options">
        <summary>Options</summary>
        {chosen?.options.map((option) => (
          <OptionField key={`${chosen.name}.${option.name}`} option={option} prefix={chosen.name} />
        ))}
        <div class="field">
          <label for={seedId}>Seed</label>
          <input
            id={seedId}
            type="number"
            min={0}
            class="number-input"
            value={seed}
            onInput={(event) => set({ seed: event.currentTarget.value })}
          />
          <p class="help">Random state. The same seed gives the same clusters.</p>
          <Fault field="seed" />
        </div>
      </details>
      <div class="go">
        <button type="submit" class="button main" disabled={isBlocked}>
          <Icon name="play" /> Fit
        </button>
        <Fault field="run" />
      </div>
    </form>
  );
}

function KChoice({ k, automatic }: { k: number; automatic: boolean }) {
  const id = useId();
  const most = Math.max(2, Math.min(30, (table.value?.rows ?? 31) - 1));
  return (
    <>
      <div class="segments" role="radiogroup" aria-label="How K is chosen">
        {[true, false].map((value) => (
          <label key={String(value)} class={automatic === value ? "on" : ""}>
            <input
              type="radio"
              class="unseen"
              name="k-mode"
              checked={automatic === value}
              onChange={() => set({ automatic: value })}
            />
            {value ? "automatic" : "set K"}
          </label>
        ))}
      </div>
      {automatic ? (
        <EffortChoice />
      ) : (
        <div class="slider">
          <label for={id}>Clusters K</label>
          <output>{k}</output>
          <input
            id={id}
            type="range"
            min={2}
            max={most}
            value={k}
            onInput={(event) => set({ k: Number(event.currentTarget.value) })}
          />
        </div>
      )}
      <Fault field="k" />
    </>
  );
}

/** How much time the choice of K takes. */
export function EffortChoice() {
  return (
    <Select
      label="Effort"
      value={draft.value.budget}
      field="budget"
      options={workspace.value!.budgets}
      onChange={(budget) => set({ budget })}
    />
  );
}

function OptionField({ option, prefix }: { option: Option; prefix: string }) {
  const id = useId();
  const key = `${prefix}.${option.name}`;
  const value = draft.value.options[key] ?? (option.default === null ? "" : String(option.default));
  const put = (text: string) => set({ options: { ...draft.value.options, [key]: text } });
  return (
    <div class="field">
      <label for={id}>{option.title}</label>
      {option.choices ? (
        <select id={id} class="choice" value={value} onChange={(event) => put(event.currentTarget.value)}>
          {option.choices.map((choice) => (
            <option key={choice} value={choice} selected={choice === value}>
              {choice}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          type="text"
          inputMode={option.type === "text" ? "text" : "decimal"}
          class="number-input"
          value={value}
          placeholder="automatic"
          onInput={(event) => put(event.currentTarget.value)}
        />
      )}
      <p class="help">{option.help}</p>
      <Fault field={`option:${option.name}`} />
    </div>
  );
}

/** Live progress: the stage, the objective of the restart that runs, and a way to stop. */
export function Running({ run }: { run: Run }) {
  const [isStopping, setStopping] = useState(false);
  const step = steps.value[run.id];
  const { progress } = run;
  return (
    <section class="running-card" aria-label="Progress">
      <div>
        <strong>{run.title}</strong>
        <span class="muted"> {progress?.stage ?? "starting"}</span>
        {progress?.left ? <span class="muted"> · about {duration(progress.left)} left</span> : null}
      </div>
      <progress
        max={progress?.total ?? undefined}
        value={progress?.total ? (progress.done ?? 0) : undefined}
        aria-label="Progress"
      />
      {step && (
        <div class="live-step">
          <LiveCurve values={step.history} />
          <span>
            restart {step.restart + 1}, iteration {step.iteration}
            {step.objective !== null && `, objective ${shortened(step.objective)}`}
          </span>
        </div>
      )}
      <button
        type="button"
        class="button"
        disabled={isStopping}
        onClick={() => {
          setStopping(true);
          void cancel(run.id);
        }}
      >
        <Icon name="stop" /> {isStopping ? "Stopping after this step…" : "Cancel and keep the best so far"}
      </button>
      {place.value.page === "fit" && criteria.value[run.id] && (
        <CriterionCharts criteria={criteria.value[run.id]!} k={null} pick={null} />
      )}
    </section>
  );
}

function LiveCurve({ values }: { values: number[] }) {
  if (values.length < 2) return null;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const d = values
    .map(
      (value, i) =>
        `${((120 * i) / (values.length - 1)).toFixed(1)},${(29 - (28 * (value - low)) / (high - low || 1)).toFixed(1)}`,
    )
    .join("L");
  return (
    <svg class="curve live-curve" viewBox="0 0 120 30" aria-hidden="true">
      <path class="line" d={`M${d}`} />
    </svg>
  );
}

function Watch({ run }: { run: Run }) {
  const { value: film, error } = useLoaded(() => loadFilm(run, table.value!.rows), [run.id]);
  if (error)
    return (
      <>
        <p class="muted hint">{error}</p>
        <MapPanel />
      </>
    );
  if (!film) return <p class="empty">Loading the iterations…</p>;
  return (
    <Place
      class="player"
      inputs={[film, run.colors.join(), run.names.join()]}
      make={(element) => {
        const options = {
          alone: true,
          movable: true,
          heightOf: (stage: HTMLElement) => stage.clientHeight,
          crowd: new PixelDensity(),
        };
        const player = new Player(element, { ...film, names: run.names, colors: run.colors }, options);
        return () => player.close();
      }}
    />
  );
}

function Outcome({ run }: { run: Run }) {
  return (
    <div class="outcome">
      <span>
        <strong>{run.title}</strong>
        {run.silhouette !== null && <span class="muted"> · silhouette {run.silhouette.toFixed(2)}</span>}
        {run.seconds !== null && <span class="muted"> · {duration(run.seconds)}</span>}
        {run.stopped && <span class="warned"> · stopped early: this is the best so far</span>}
        {run.converged === false && !run.stopped && <span class="warned"> · not converged</span>}
      </span>
      <button type="button" class="button" onClick={() => go({ page: "clusters", cluster: null })}>
        Inspect the clusters
      </button>
    </div>
  );
}
