/** Open a table; see its columns and change what is done with them. */

import { useRef, useState } from "preact/hooks";
import { plural } from "../dom";
import {
  type Column,
  get,
  type Preparation,
  type Role,
  type Rows,
  send,
  type Table,
  upload,
  type Workspace,
} from "./api";
import { bytes, Fault, Icon, percent, Section, Select, useLoaded, valueText } from "./controls";
import { RowList } from "./row_list";
import { attempt, change, go, message, place, preparation, take, workspace } from "./state";

const ROLES: Record<Role, string> = { feature: "use", id: "identifier", weight: "weight", ignored: "leave out" };
const TRANSFORMS: Record<string, string> = { none: "no transform", auto: "automatic" };
const LABELS: Record<string, string> = {
  scale: "Scaling",
  missing: "Missing values",
  dates: "Dates",
  decimal: "Decimal sign",
};

async function opened(field: string, task: () => Promise<Workspace>): Promise<void> {
  const answer = await attempt(field, task);
  if (!answer) return;
  take(answer);
  go({ page: "data" });
  if (answer.table) message.value = `${answer.table.name} is open: ${plural(answer.table.rows, "row")}.`;
}

function openFile(file: File): Promise<void> {
  const isWorkspace = file.name.endsWith(".coterie");
  const path = isWorkspace ? "/api/workspace/open" : `/api/upload?name=${encodeURIComponent(file.name)}`;
  return opened("file", () => upload<Workspace>(path, file));
}

export function DataPage() {
  const given = workspace.value!;
  return (
    <div class="data">
      {given.table ? <Opened table={given.table} /> : <Welcome />}
      {given.table && (
        <details class="panel another">
          <summary>Open another table</summary>
          <Sources />
        </details>
      )}
    </div>
  );
}

function Welcome() {
  return (
    <div class="welcome">
      <h1>Find groups in a table</h1>
      <p class="lead">
        Open a table. See which rows belong together, how many groups there are, and how reliable that is. Nothing
        leaves this machine.
      </p>
      <Sources />
    </div>
  );
}

function Sources() {
  const given = workspace.value!;
  return (
    <div class="sources">
      <Drop />
      <Paste />
      {given.recent.length > 0 && (
        <Section title="Recent">
          <ul class="files">
            {given.recent.slice(0, 8).map(({ id, name, rows, runs, when, exists }) => (
              <li key={id}>
                <button
                  type="button"
                  class="link"
                  disabled={!exists}
                  onClick={() => opened("file", () => send("POST", "/api/open", { recent: id }))}
                >
                  {name}
                </button>
                <span class="muted">
                  {plural(rows, "row")}, {plural(runs, "run")}, {when}
                </span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {given.folder.length > 0 && (
        <Section title="In this folder">
          <ul class="files">
            {given.folder.slice(0, 12).map((name) => (
              <li key={name}>
                <button
                  type="button"
                  class="link"
                  onClick={() => opened("file", () => send("POST", "/api/open", { path: name }))}
                >
                  {name}
                </button>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Demo tables">
        <div class="demos">
          {given.demos.map(({ name, about }) => (
            <button
              type="button"
              key={name}
              class="demo"
              onClick={() => opened("file", () => send("POST", "/api/open", { demo: name }))}
            >
              <strong>{name}</strong>
              <span>{about}</span>
            </button>
          ))}
        </div>
      </Section>
    </div>
  );
}

function Drop() {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer?.files[0];
    if (file) void openFile(file);
  };
  return (
    <div>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button in it does the same by key */}
      <div
        class={`drop ${isOver ? "over" : ""}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <Icon name="upload" />
        <p>
          Drop a file here, or{" "}
          <button type="button" class="button main" onClick={() => input.current?.click()}>
            Choose a file
          </button>
        </p>
        <p class="muted">CSV, Parquet, Excel, JSON, NumPy, or a saved workspace</p>
        <input
          ref={input}
          type="file"
          class="unseen"
          aria-label="File to open"
          tabIndex={-1}
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (file) void openFile(file);
            event.currentTarget.value = "";
          }}
        />
      </div>
      {workspace.value?.busy && <p class="muted">{workspace.value.busy}…</p>}
      {workspace.value?.problem && (
        <p class="fault" role="alert">
          {workspace.value.problem.message}
        </p>
      )}
      <Fault field="file" />
      <Fault field="workspace" />
    </div>
  );
}

function Paste() {
  const [text, setText] = useState("");
  return (
    <details class="paste">
      <summary>Paste from a spreadsheet</summary>
      <textarea
        rows={5}
        aria-label="Rows copied from a spreadsheet, with column names in the first line"
        placeholder={"name\tage\tincome\nAnna\t34\t51000"}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button
        type="button"
        class="button"
        disabled={!text.trim()}
        onClick={() => opened("paste", () => send("POST", "/api/paste", { text }))}
      >
        Open these rows
      </button>
      <Fault field="paste" />
    </details>
  );
}

function Opened({ table }: { table: Table }) {
  const used = table.columns.filter((column) => column.role === "feature").length;
  const ready = preparation.value;
  return (
    <>
      <div class="title">
        <div>
          <h1>{table.name}</h1>
          <p class="muted">
            {plural(table.rows, "row")} · {used} of {plural(table.columns.length, "column")} used
            {table.bytes > 0 && ` · ${bytes(table.bytes)}`}
          </p>
        </div>
        <button type="button" class="button main next" disabled={!used} onClick={() => go({ page: "fit" })}>
          Continue to Fit
        </button>
      </div>
      {ready && <Preparing ready={ready} />}
      {table.notes.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
      <Columns columns={table.columns} rows={table.rows} />
      <FirstRows />
    </>
  );
}

function FirstRows() {
  const { value } = useLoaded(() => get<Rows>("/api/rows?count=50"), []);
  if (!value) return null;
  return (
    <section class="group" aria-label="First rows">
      <h2>First rows</h2>
      <RowList label="First rows" rows={value} />
    </section>
  );
}

function Preparing({ ready }: { ready: Preparation }) {
  const names = ["scale", "missing", "dates", "decimal"] as const;
  const isMissing = ready.error && !names.some((name) => name === ready.error!.field);
  return (
    <section class="preparation" aria-label="Preparation">
      <div class="row">
        {names
          .filter((name) => (ready.choices[name]?.length ?? 0) > 1)
          .map((name) => (
            <div key={name}>
              <Select
                label={LABELS[name]!}
                value={ready[name]}
                field={name}
                options={ready.choices[name]!}
                onChange={(value) => void change(name, "/api/preparation", { [name]: value })}
              />
              {ready.error?.field === name && (
                <p class="fault" role="alert">
                  {ready.error.message}
                </p>
              )}
            </div>
          ))}
      </div>
      {isMissing && (
        <p class="fault" role="alert">
          {ready.error!.message}
        </p>
      )}
      <p class="muted">
        {!ready.error && `${plural(ready.rows_used, "row")} used`}
        {ready.rows_dropped > 0 && `, ${plural(ready.rows_dropped, "row")} dropped`}
        {ready.dimensions > 0 && `, ${plural(ready.dimensions, "dimension")} after preparation`}
        {ready.scale === "auto" && ready.scale_used && `, scaling: ${ready.scale_used}`}
      </p>
      {ready.notes.map((note) => (
        <p key={note} class="muted">
          {note}
        </p>
      ))}
      {ready.warnings.map((note) => (
        <p key={note} class="note warn">
          {note}
        </p>
      ))}
    </section>
  );
}

function Columns({ columns, rows }: { columns: Column[]; rows: number }) {
  const sought = place.value.search.toLowerCase();
  const listed = columns.filter(({ name }) => name.toLowerCase().includes(sought));
  return (
    <section class="columns" aria-label="Columns">
      {columns.length > 12 && (
        <input
          type="search"
          class="search"
          placeholder="Find a column"
          aria-label="Find a column"
          value={place.value.search}
          onInput={(event) => go({ search: event.currentTarget.value })}
        />
      )}
      <ul class="column-list">
        {listed.slice(0, 300).map((column) => (
          <ColumnRow key={column.name} column={column} rows={rows} />
        ))}
      </ul>
      {listed.length > 300 && (
        <p class="muted">The first 300 of {plural(listed.length, "column")}: search for others.</p>
      )}
    </section>
  );
}

function ColumnRow({ column, rows }: { column: Column; rows: number }) {
  const { name, kind, missing, min, mean, max, role, reason, reading, choices, examples } = column;
  const field = `column:${name}`;
  const why = role === "feature" ? reading : (reason ?? reading);
  const post = (body: object) => void change(field, "/api/columns", { [name]: body });
  const range =
    min !== null && max !== null ? `${valueText(min)} to ${valueText(max)}` : examples.slice(0, 3).join(", ");
  return (
    <li class={`column ${role}`}>
      <div class="what">
        <strong title={name}>{name}</strong>
        <span class="muted">
          {kind}
          {missing > 0 && <span class="warned"> · {percent(missing / rows)} missing</span>}
        </span>
      </div>
      <Bars column={column} />
      <div class="range muted" title={mean === null ? undefined : `mean ${valueText(mean)}`}>
        {range}
      </div>
      <div class="settings">
        <div class="segments" role="radiogroup" aria-label={`Role of ${name}`}>
          {choices.roles.map((choice) => (
            <label key={choice} class={choice === role ? "on" : ""}>
              <input
                type="radio"
                class="unseen"
                name={field}
                checked={choice === role}
                onChange={() => post({ role: choice })}
              />
              {ROLES[choice]}
            </label>
          ))}
        </div>
        {role === "feature" && choices.as.length > 1 && (
          <Select
            label={`Type of ${name}`}
            hideLabel
            value={column.as ?? ""}
            options={choices.as}
            onChange={(value) => post({ as: value })}
          />
        )}
        {role === "feature" && column.as !== "category" && choices.transforms.length > 1 && (
          <Select
            label={`Transformation of ${name}`}
            hideLabel
            value={column.transform}
            options={choices.transforms.map((value) => ({ value, text: TRANSFORMS[value] ?? value }))}
            onChange={(value) => post({ transform: value })}
          />
        )}
      </div>
      {why && why !== kind && why !== ROLES[role] && <p class="why muted">{why}</p>}
      <Fault field={field} />
    </li>
  );
}

/** A small histogram. */
function Bars({ column: { histogram, name } }: { column: Column }) {
  if (!histogram) return <div class="bars" />;
  const { counts } = histogram;
  const most = Math.max(1, ...counts);
  const wide = 100 / counts.length;
  const d = counts
    .map((count, i) => {
      const high = count ? Math.max(1, (28 * count) / most) : 0;
      return high
        ? `M${(i * wide + 0.4).toFixed(2)},${(28 - high).toFixed(2)}h${(wide - 0.8).toFixed(2)}v${high.toFixed(2)}h-${(wide - 0.8).toFixed(2)}z`
        : "";
    })
    .join("");
  const about =
    "labels" in histogram
      ? histogram.labels.map((label, i) => `${label}: ${counts[i]!.toLocaleString("en")}`).join("\n")
      : `${valueText(histogram.low)} to ${valueText(histogram.high)}`;
  return (
    <svg
      class="bars"
      viewBox="0 0 100 28"
      preserveAspectRatio="none"
      role="img"
      aria-label={`Histogram of ${name}`}
      data-tip={about}
    >
      <path d={d} />
    </svg>
  );
}
