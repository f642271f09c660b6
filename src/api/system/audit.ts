import type { AuditEntry, AuditFilter } from "../../domain/system/audit.ts";
import { jsonList } from "../../domain/call/json.ts";
import { type AuditRow, countAudit, listAudit as listAuditRows } from "../../store/events/journal.ts";
import type { Answer } from "../call/answer.ts";
import { shownAs } from "./event.ts";
import type { Deps } from "../call/services.ts";

/** Lists the changes that users and runs requested, oldest first, for as long as the journal keeps them. */
export async function listAudit({ db }: Deps<"db">, filter: AuditFilter): Promise<Answer<AuditEntry[]>> {
  const { after, page_size: size, actor: actors, kind: kinds, from, to } = filter;
  const wanted = { actors, kinds, from, to };
  const [found, total] = await Promise.all([
    listAuditRows(db, after, size + 1, wanted),
    countAudit(db, after, wanted),
  ]);
  const shown = found.slice(0, size);
  const last = found.length > size ? shown.at(-1) : undefined;
  return {
    json: jsonList(shown.map((row) => shownAs<AuditEntry, AuditRow>(row))),
    total,
    next: last === undefined ? null : { name: "after", value: String(last.seq) },
  };
}
