import { readTextArgument } from "../../terminal/input_text.ts";
import { type AnyCommand, command, option } from "../command.ts";

export const group: AnyCommand[] = [
  command({
    name: "explain",
    about: "Show which worker a message would reach and why, without sending it",
    args: ["text|-"],
    options: {
      sessionKey: option.text("--session-key <key>", "conversation of the message", {
        completion: "session_key",
      }),
    },
    examples: ["route explain 'Sum up the news'"],
    async run({ client, out, io, args: [given = ""], options }) {
      const content = await readTextArgument(io, given, null);
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
