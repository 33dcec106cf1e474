/**
 * Charts and sections that the server draws with the code of the report. It escapes all text in them. They are parsed in
 * a document of their own, where nothing runs, and elements and attributes that could do anything are removed.
 */

import { tables } from "../tables";
import { tabs } from "../tabs";
import { tooltipsWithin } from "../tooltips";
import { editionOf, type Run, text } from "./api";
import { Place, useLoaded } from "./controls";

const ACTIVE = "script, style, iframe, object, embed, form, link, meta, base, foreignObject, animate, set";

function parsed(markup: string): DocumentFragment {
  const { body } = new DOMParser().parseFromString(markup, "text/html");
  for (const element of body.querySelectorAll(ACTIVE)) element.remove();
  for (const element of body.querySelectorAll("*")) {
    for (const { name, value } of [...element.attributes]) {
      const isLink = name === "href" || name === "src" || name === "xlink:href";
      if (name.startsWith("on") || name === "style" || (isLink && !/^(#|data:image\/png)/.test(value))) {
        element.removeAttribute(name);
      }
    }
  }
  const fragment = document.createDocumentFragment();
  fragment.append(...document.adoptNode(body).childNodes);
  return fragment;
}

export function Fragment({ run, chart }: { run: Run; chart: string }) {
  const { value, error } = useLoaded(() => text(`/api/runs/${run.id}/charts/${chart}`), [chart, editionOf(run)]);
  if (error) return <p class="muted">{error}</p>;
  if (value === null) return <p class="muted">Computing…</p>;
  return (
    <Place
      class="fragment"
      inputs={[value]}
      make={(element) => {
        element.replaceChildren(parsed(value));
        tables(element);
        tabs(element);
        tooltipsWithin(element);
        return undefined;
      }}
    />
  );
}
