import { z } from "zod";
import { auditQuery, auditSchema } from "../../domain/system/audit.ts";
import { defineRoute } from "../route.ts";

export const auditRoutes = [
  defineRoute("GET /api/audit", {
    access: "read:users",
    operation: "audit.list",
    summary: "List changes with caller, time and address, oldest first",
    description:
      "Entries are kept as long as the journal. `Accept: application/x-ndjson` returns the page as JSON lines. The header " +
      "Link has the address of the next page.",
    query: auditQuery,
    response: z.array(auditSchema),
    handle: async ({ api, query, raw }) => {
      const answer = await api.audit.list(query);
      const lines = /\bapplication\/x-ndjson\b/i.test(raw.headers.get("accept") ?? "");
      return lines ? { ...answer, form: "lines" } : answer;
    },
  }),
] as const;
