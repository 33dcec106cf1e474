/** Entry point of pages that play a fit. */

import { film, type PlayerData, read } from "./data";
import { Player } from "./player";

const alone = document.querySelectorAll("figure").length === 1;
for (const figure of document.querySelectorAll<HTMLElement>("[data-player]")) {
  new Player(figure, film(read<PlayerData>(figure.dataset.player!)), { alone });
}
