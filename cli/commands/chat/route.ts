import { type AnyCommand, command } from "../command.ts";
import { readText } from "../../terminal/prompt.ts";

const TEXT_MAX_BYTES = 256 * 1024;

export const routeCommands: AnyCommand[] = [
  command({
    name: "explain",
    about: "Say which worker a message would go to, and why, without sending it",
    args: ["text|-"],
    options: {
      sessionKey: {
        flags: "--session-key <key>",
        completion: "session_key",
        about: "the conversation in which it would be said",
        type: "text",
      },
    },
    examples: ["route explain 'Sum up the news'"],
    async run({ client, out, io, args: [given = ""], options }) {
      const content = given === "-" ? await readText(io, TEXT_MAX_BYTES, "-") : given;
      const session = options.sessionKey === undefined ? {} : { session_key: options.sessionKey };
      const { json, value } = await client.call("POST /api/messages/explain", {
        body: { content, ...session },
      });
      const { workers, ...decided } = value;
      const scores = workers.filter(({ score }) => score > 0).map(({ name, paused, score, words }) =>
        `${name}${paused ? " (paused)" : ""} ${score} (${words.join(", ")})`
      );
      out.object(json, { ...decided, scores: scores.join("; ") }, value.worker_id ?? "");
    },
  }),
];
