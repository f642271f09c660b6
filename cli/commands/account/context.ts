import { ServiceError } from "../../../src/domain/call/error.ts";
import { readLogins, refuseInRun, updateLogins } from "../../client/login_file.ts";
import { toColumns } from "../../terminal/column.ts";
import { type AnyCommand, command } from "../command.ts";

const LOCAL = "local";

export const group: AnyCommand[] = [
  command({
    name: "list",
    about: "List services that you are logged in to",
    examples: ["context list"],
    async run({ io, out }) {
      const { current, hosts } = await readLogins(io);
      const rows = [
        { url: LOCAL, username: "", current: current === "" },
        ...Object.entries(hosts).map(([url, { username }]) => ({ url, username, current: url === current })),
      ];
      const columns = toColumns("url username current");
      await out.list(JSON.stringify(rows), rows, columns, (row) => String(row.url));
    },
  }),
  command({
    name: "use",
    about: "Select the service for later commands, by its URL, or local for the configured one",
    args: ["url"],
    examples: ["context use https://svc.example.org", "context use local"],
    async run({ io, args: [given = ""], note }) {
      refuseInRun(io, "select a service");
      const { hosts } = await readLogins(io);
      const url = given === LOCAL ? "" : given.replace(/\/+$/, "");
      if (url !== "" && hosts[url] === undefined) {
        throw new ServiceError(
          "not_found",
          `Cannot use ${given}: you are not logged in. Run \`svc ctl login ${given}\`.`,
        );
      }
      await updateLogins(io, (all) => ({ ...all, current: url }));
      note(`using ${url === "" ? "the configured service" : url}`);
    },
  }),
];
