/** Entry point of pages that show clusters. */

import { type MapData, read } from "./data";
import { ClusterMap } from "./map";
import { tables } from "./tables";
import { tabs } from "./tabs";
import { tooltips } from "./tooltips";

for (const figure of document.querySelectorAll<HTMLElement>("[data-map]")) {
  new ClusterMap(figure, read<MapData>(figure.dataset.map!));
}
tables();
tabs();
tooltips();
