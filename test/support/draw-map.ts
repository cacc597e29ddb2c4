/** `npm run map`. */
import { drawMap, writeMap } from "./rooms.ts";

writeMap(drawMap());
