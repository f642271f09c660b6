import type { Api } from "../../src/http/app.ts";
import { type AnyCommand, command } from "./command.ts";
import type { RefKind } from "../client/resource_ref.ts";

/** What is asked with the id of a thing alone. */
type Endpoint = Extract<
  keyof Api,
  | `POST /api/${"tasks" | "questions"}/:id/cancel`
  | `POST /api/executions/:id/${"cancel" | "retry"}`
>;

/** A command that moves one thing from one state to another, and prints what came of it. */
export function transitionCommand(
  { ref, endpoint, ...spec }: {
    name: string;
    about: string;
    ref: RefKind;
    endpoint: Endpoint;
    examples: string[];
  },
): AnyCommand {
  return command({
    ...spec,
    args: ["id"],
    refs: { id: ref },
    options: {},
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call(endpoint, { params: { id }, body: {} });
      out.object(json, value);
    },
  });
}
