import { ServiceError } from "../../../src/domain/error.ts";
import { type Column, field } from "../../terminal/column.ts";
import { type AnyCommand, command } from "../command.ts";
import { readLogins, updateLogins } from "../../client/login_file.ts";

const COLUMNS: Column[] = [field("url"), field("username"), field("current")];
const LOCAL = "local";

export const contextCommands: AnyCommand[] = [
  command({
    name: "list",
    about: "List the services that svc ctl is logged in at",
    options: {},
    examples: ["context list"],
    async run({ io, out }) {
      const { current, hosts } = await readLogins(io);
      const rows = [
        { url: LOCAL, username: "", current: current === "" },
        ...Object.entries(hosts).map(([url, { username }]) => ({ url, username, current: url === current })),
      ];
      await out.list(JSON.stringify(rows), rows, COLUMNS, (row) => String(row.url));
    },
  }),
  command({
    name: "use",
    about: "Talk to another service from now on; local: the one of this machine's configuration",
    args: ["url"],
    options: {},
    examples: ["context use https://svc.example.org", "context use local"],
    async run({ io, args: [given = ""], note }) {
      const { hosts } = await readLogins(io);
      const url = given === LOCAL ? "" : given.replace(/\/+$/, "");
      if (url !== "" && hosts[url] === undefined) {
        throw new ServiceError(
          "not_found",
          `Cannot use ${given}: there is no login for it; run svc ctl login ${given}`,
        );
      }
      await updateLogins(io, (all) => ({ ...all, current: url }));
      note(url === "" ? "svc ctl talks to the service of the configuration" : `svc ctl talks to ${url}`);
    },
  }),
];
