// Bundles svc for a run of all tests into .cache/tests/, as the executable contains it. A bundle starts in half the time of the source.
import { join } from "node:path";
import { readAddon } from "./addon.ts";
import { bundle } from "./bundle.ts";
import { ROOT } from "./lock.ts";
import { readStamp } from "./stamp.ts";
import { findTarget } from "./target.ts";

const target = findTarget(undefined);
await bundle(join(ROOT, ".cache", "tests"), await readAddon(target), await readStamp());
