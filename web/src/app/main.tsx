/** Entry point of the app. */

import { render } from "preact";
import { tooltips } from "../tooltips";
import { Shell } from "./shell";
import { follow, refresh } from "./state";

tooltips();
void refresh().then(follow);
render(<Shell />, document.getElementById("app")!);
