/** Take the result along: tables, model, report, pictures, and the code that repeats it. */

import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { editionOf, file, get, type Run } from "./api";
import { Fault, Icon, useLoaded } from "./controls";
import { MapPanel } from "./map_panel";
import { download } from "./picture";
import { attempt, message, shown } from "./state";

const FILES: { kind: string; title: string; about: string }[] = [
  { kind: "table.csv", title: "Table as CSV", about: "All rows and columns, with the cluster of each row." },
  { kind: "table.parquet", title: "Table as Parquet", about: "The same, smaller, with exact types." },
  { kind: "table.xlsx", title: "Table as Excel", about: "The same, for up to a million rows." },
  { kind: "model", title: "Model", about: "Assigns new rows: coterie predict MODEL DATA." },
  { kind: "report", title: "Report", about: "Self-contained HTML file with all charts." },
  { kind: "profiles", title: "Profiles", about: "Size, rule and means of each cluster as a table." },
  { kind: "workspace", title: "Workspace", about: "This table and all runs. Open it again on the Data page." },
];

export function ExportPage() {
  const run = shown.value!;
  return (
    <div class="export">
      <h1>Export {run.title}</h1>
      <ul class="downloads">
        {FILES.map(({ kind, title, about }) => (
          <Download key={kind} kind={kind} title={title} about={about} run={run.id} />
        ))}
      </ul>
      <div class="grid">
        <Code kind="command" title="Command" about="Repeats this result in a terminal." run={run} />
        <Code kind="python" title="Python" about="Gives the same labels." run={run} />
      </div>
      <section class="group picture" aria-label="Picture of the map">
        <h2>Picture of the map</h2>
        <MapPanel />
      </section>
    </div>
  );
}

/** A link that first asks whether there is such a file, so that a reason appears beside it. */
function Download({ kind, title, about, run }: { kind: string; title: string; about: string; run: string }) {
  const [isBusy, setBusy] = useState(false);
  const field = `export:${kind}`;
  const save = async () => {
    setBusy(true);
    await attempt(field, async () => {
      const { name, content } = await file(`/api/export/${kind}?run=${run}`);
      download(content, name ?? kind);
      message.value = `${name ?? kind} was saved.`;
    });
    setBusy(false);
  };
  return (
    <li>
      <button type="button" class="button" disabled={isBusy} onClick={() => void save()} data-kind={kind}>
        <Icon name="download" /> {title}
      </button>
      <span class="muted">{isBusy ? "Writing…" : about}</span>
      <Fault field={field} />
    </li>
  );
}

/** A command, broken between words: a line must not end within an option such as --seed. */
function Words({ text }: { text: string }) {
  const words = text.split(" ");
  return (
    <>
      {words.map((word, i) => (
        <Fragment key={i}>
          {i > 0 && " "}
          <span class="word">{word}</span>
        </Fragment>
      ))}
    </>
  );
}

function Code({ kind, title, about, run }: { kind: string; title: string; about: string; run: Run }) {
  const { value, error } = useLoaded(
    () => get<{ text?: string; reason?: string }>(`/api/export/${kind}?run=${run.id}&show=1`),
    [kind, editionOf(run)],
  );
  const copy = async () => {
    await navigator.clipboard.writeText(value?.text ?? "");
    message.value = `${title} copied.`;
  };
  return (
    <section class="code-block" aria-label={title}>
      <div class="title">
        <h2>{title}</h2>
        <button type="button" class="button" disabled={!value?.text} onClick={() => void copy()}>
          Copy
        </button>
      </div>
      <p class="muted">{about}</p>
      {value?.text && <pre>{kind === "command" ? <Words text={value.text} /> : value.text}</pre>}
      {(value?.reason || error) && <p class="note">{value?.reason ?? error}</p>}
    </section>
  );
}
