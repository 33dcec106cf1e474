/** Entry point of the app. */

import { effect } from "@preact/signals";
import { render } from "preact";
import { tooltips } from "../tooltips";
import { loadMap } from "./arrays";
import { Shell } from "./shell";
import { follow, preparation, refresh } from "./state";

tooltips();
effect(() => {
  // The first map is asked for as soon as a table is prepared, so that it is there when a page shows it.
  const ready = preparation.value;
  if (ready && !ready.error) loadMap(ready.key, "axes").catch(() => {});
});
void refresh().then(follow);
render(<Shell />, document.getElementById("app")!);
