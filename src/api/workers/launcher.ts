import type { LauncherView } from "../../domain/workers/launcher.ts";
import {
  countLaunches,
  listLauncherRows,
  resumeLauncher as resumeRow,
} from "../../store/workers/launcher.ts";
import { type Answer, answer, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

/** Lists the launchers of the configuration, in its order. */
export async function listLaunchers(deps: Deps<"db" | "launchers">): Promise<Answer<LauncherView[]>> {
  return answer(await readLaunchers(deps));
}

async function readLaunchers({ db, launchers }: Deps<"db" | "launchers">): Promise<LauncherView[]> {
  const [rows, counts] = await Promise.all([listLauncherRows(db), countLaunches(db)]);
  return Object.entries(launchers).map(([name, { labels, max }]) => {
    const row = rows.find((one) => one.name === name);
    const count = counts.find(({ launcher }) => launcher === name);
    return {
      ...{ name, labels, max, open: count?.open ?? 0, running: count?.running ?? 0 },
      paused: (row?.paused_at ?? null) !== null,
      failures: row?.failures ?? 0,
      retry_at: row?.retry_at ?? null,
      last_error: row?.last_error ?? "",
    };
  });
}

/** Ends the pause and the back-off of a launcher. Does nothing without any. Throws `not_found`. */
export async function resumeLauncher(
  deps: Deps<"db" | "clock" | "launchers">,
  call: Call,
  name: string,
): Promise<Answer<LauncherView>> {
  const { db, clock } = deps;
  const find = async () =>
    requireFound((await readLaunchers(deps)).find((one) => one.name === name) ?? null, "launcher", name);
  await find();
  // Without a failed start, the guard stores nothing.
  await db.write([
    ...resumeRow(name),
    recordBy(call, clock.now(), { kind: "launcher.resumed", data: { launcher: name } }),
  ]);
  return answer(await find());
}
