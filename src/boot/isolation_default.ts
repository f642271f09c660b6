import type { Clock } from "../base/clock.ts";
import type { Config } from "../config/schema.ts";
import type { Database } from "../store/db/database.ts";
import { findSetting, storeSetting } from "../store/db/setting.ts";
import { record } from "../store/events/journal.ts";

/** Stores `isolation.default`, which the database shows as `isolation_effective`. A change goes to the journal. */
export async function storeIsolationDefault(
  { db, clock }: { db: Database; clock: Clock },
  { isolation }: Config,
): Promise<void> {
  const before = await findSetting(db, "isolation_default");
  const after = JSON.stringify(isolation.default);
  if (before === after) return;
  const data = { from: JSON.parse(before ?? '"namespace"'), to: isolation.default };
  const isChange = data.from !== data.to;
  await db.write([
    storeSetting("isolation_default", after),
    ...(isChange ? [record(clock.now(), { kind: "system.isolation_changed", data })] : []),
  ]);
}
