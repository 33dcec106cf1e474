/** The runs so far: open one again, or remove it. */

import { useEffect, useRef } from "preact/hooks";
import type { Run } from "./api";
import { duration, IconButton } from "./controls";
import { cancel, choose, current, isActive, runs } from "./state";

const STATES: Record<Run["status"], string> = {
  queued: "waiting",
  running: "running",
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
};

export function History({ close }: { close: () => void }) {
  const list = useRef<HTMLElement>(null);
  useEffect(() => list.current?.querySelector<HTMLElement>("button")?.focus(), []);
  return (
    <aside
      ref={list}
      class="history"
      aria-label="History of runs"
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <div class="title">
        <h2>History</h2>
        <IconButton label="Close the history" icon="close" onClick={close} />
      </div>
      {runs.value.length === 0 && <p class="muted">No runs yet.</p>}
      <ol>
        {runs.value.toReversed().map((run) => (
          <Entry key={run.id} run={run} />
        ))}
      </ol>
    </aside>
  );
}

function Entry({ run }: { run: Run }) {
  const isCurrent = run.id === current.value?.id;
  const facts = [
    run.status === "done" ? (run.seconds === null ? null : duration(run.seconds)) : STATES[run.status],
    run.silhouette === null ? null : `silhouette ${run.silhouette.toFixed(2)}`,
    run.stopped ? "stopped early" : null,
    run.current_preparation ? null : "other columns or preparation",
  ].filter((fact) => fact !== null);
  return (
    <li class={isCurrent ? "current" : ""}>
      <button
        type="button"
        class="link"
        aria-current={isCurrent}
        disabled={run.status !== "done"}
        onClick={() => void choose(run.id)}
      >
        {run.title}
      </button>
      <span class="muted">{facts.join(" · ")}</span>
      {run.error && <span class="fault">{run.error.message}</span>}
      <IconButton
        label={isActive(run) ? `Cancel ${run.title}` : `Remove ${run.title}`}
        icon="close"
        onClick={() => void cancel(run.id)}
      />
    </li>
  );
}
