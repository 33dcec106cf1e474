/** The frame around all pages: steps, history, messages. */

import { Component, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { plural } from "../dom";
import { ChoosePage } from "./choose_page";
import { ClustersPage } from "./clusters_page";
import { ComparePage } from "./compare_page";
import { Fault, IconButton } from "./controls";
import { DataPage } from "./data_page";
import { ExportPage } from "./export_page";
import { FitPage } from "./fit_page";
import { History } from "./history";
import {
  active,
  cancel,
  connected,
  current,
  denied,
  go,
  message,
  PAGES,
  type PageName,
  place,
  redo,
  refresh,
  shown,
  table,
  undo,
  workspace,
} from "./state";

const TITLES: Record<PageName, string> = {
  data: "Data",
  fit: "Fit",
  choose: "Choose K",
  clusters: "Clusters",
  compare: "Compare",
  export: "Export",
};

const PAGE_OF = {
  data: DataPage,
  fit: FitPage,
  choose: ChoosePage,
  clusters: ClustersPage,
  compare: ComparePage,
  export: ExportPage,
};

/** Why a page has nothing to show yet. */
function reason(page: PageName): string | null {
  if (page === "data") return null;
  if (!table.value) return "Open a table first";
  if (page === "fit" || page === "choose") return null;
  return shown.value ? null : "Fit clusters first";
}

export function Shell() {
  const [isOpen, setOpen] = useState(false);
  const { page } = place.value;
  const given = workspace.value;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isText = (event.target as HTMLElement).closest("input:not([type=range]), textarea, select");
      const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
      const chosen = PAGES[Number(event.key) - 1];
      if (chosen && !hasModifier && !isText) go({ page: chosen });
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || isText) return;
      event.preventDefault();
      void (event.shiftKey ? redo() : undo());
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  useEffect(
    () => document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }),
    [page],
  );
  const Page = PAGE_OF[page];
  const why = reason(page);
  return (
    <div class="app">
      <header class="top">
        <span class="brand">coterie</span>
        <nav aria-label="Steps">
          {(Object.keys(TITLES) as PageName[]).map((name) => (
            <a
              key={name}
              href={`#/${name}`}
              aria-current={name === page ? "page" : undefined}
              class={reason(name) ? "later" : ""}
              title={reason(name) ?? undefined}
              onClick={(event) => {
                event.preventDefault();
                go({ page: name });
              }}
            >
              {TITLES[name]}
            </a>
          ))}
        </nav>
        <div class="tools">
          <Status />
          <IconButton
            label={given?.can_undo ? `Undo: ${given.can_undo}` : "Undo"}
            icon="undo"
            disabled={!given?.can_undo}
            onClick={() => void undo()}
          />
          <IconButton
            label={given?.can_redo ? `Redo: ${given.can_redo}` : "Redo"}
            icon="redo"
            disabled={!given?.can_redo}
            onClick={() => void redo()}
          />
          <IconButton label="History of runs" icon="history" pressed={isOpen} onClick={() => setOpen(!isOpen)} />
        </div>
      </header>
      {!connected.value && (
        <div class="banner" role="alert">
          <span>
            {denied.value
              ? "The server was started again: open the address that it prints. Everything up to now is saved."
              : "The server does not answer. Everything up to now is saved: start it again with “coterie app”."}
          </span>
          <button type="button" class="button" onClick={() => void refresh()}>
            Try again
          </button>
        </div>
      )}
      <Fault field="history" />
      {isOpen && <History close={() => setOpen(false)} />}
      <div class={`page page-${page}`}>
        {!given ? (
          <p class="empty">Loading…</p>
        ) : why ? (
          <div class="empty">
            <p>{why}.</p>
            <button type="button" class="button main" onClick={() => go({ page: table.value ? "fit" : "data" })}>
              {table.value ? "Go to Fit" : "Go to Data"}
            </button>
          </div>
        ) : (
          <Guard key={`${page} ${table.value?.id}`}>
            <Page />
          </Guard>
        )}
      </div>
      <div class="unseen" role="status" aria-live="polite">
        {message.value}
      </div>
    </div>
  );
}

/** A part that cannot be shown leaves the rest of the page as it is. */
class Guard extends Component<{ children: ComponentChildren }, { error: Error | null }> {
  override state = { error: null as Error | null };

  override componentDidCatch(error: Error): void {
    console.error(error);
    this.setState({ error });
  }

  render() {
    if (!this.state.error) return this.props.children;
    return (
      <div class="empty">
        <p>This page could not be shown: {this.state.error.message}. Please report this.</p>
        <button type="button" class="button" onClick={() => this.setState({ error: null })}>
          Try again
        </button>
      </div>
    );
  }
}

/** What is open, and what runs. */
function Status() {
  const run = active.value;
  const opened = table.value;
  if (workspace.value?.busy) return <span class="status">{workspace.value.busy}…</span>;
  if (run) {
    const { progress } = run;
    const share = progress?.total ? ` ${Math.round((100 * (progress.done ?? 0)) / progress.total)}%` : "";
    return (
      <span class="status running">
        <span class="pulse" aria-hidden="true" />
        {progress?.stage ?? "starting"}
        {share}
        <button type="button" class="button small" onClick={() => void cancel(run.id)}>
          Cancel
        </button>
      </span>
    );
  }
  if (!opened) return null;
  return (
    <span class="status" title={`${opened.name}, ${plural(opened.rows, "row")}`}>
      {opened.name}
      {current.value && <span class="muted"> · {current.value.title}</span>}
    </span>
  );
}
