import type { AuditEntry, AuditFilter } from "../domain/audit.ts";
import { jsonList } from "../domain/json.ts";
import { type AuditRow, countAudit, listAudit as listAuditRows } from "../store/journal.ts";
import type { Answer } from "./answer.ts";
import { shownAs } from "./event.ts";
import type { Needs } from "./parts.ts";

/** GET /api/audit: changes that somebody asked for, oldest first; kept as long as the journal (contract 9). */
export async function listAudit({ db }: Needs<"db">, filter: AuditFilter): Promise<Answer<AuditEntry[]>> {
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
