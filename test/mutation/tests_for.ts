import { basename } from "node:path";
import { sourceFiles } from "../harness/tree.ts";

/** What exercises a room, nearest and fastest first; one list is run after the other until a test fails. */
const ROOMS: readonly [RegExp, readonly string[][]][] = [
  [
    /^src\/store\/(database|connection|local_driver|remote_driver|driver|writer|watch|migrate|owner|relocate|addon)/,
    [["test/store"], ["test/http/task", "test/pipeline/task_model", "test/http/event"]],
  ],
  [/^src\/store\//, [
    ["test/http/task", "test/http/chat", "test/pipeline"],
    ["test/http", "test/store", "test/run"],
    ["test/question", "test/runner", "test/engine", "test/schedule", "test/platform"],
  ]],
  [/^src\/http\/auth/, [["test/http/auth", "test/http/token", "test/http/access", "test/http/scope"], [
    "test/http/conventions",
    "test/http/stream",
    "test/journey/forbidden",
  ]]],
  [/^src\/http\//, [["test/http"], ["test/contract", "test/cli"], ["test/journey"]]],
  [/^src\/files\//, [["test/files", "test/http/upload", "test/http/path"], [
    "test/http/chat",
    "test/http/worker",
    "test/journey/strace",
  ]]],
  [/^src\/platform\//, [["test/platform", "test/pipeline"], ["test/http"]]],
  [/^src\/run\/(remote_|polls|seen_)/, [["test/runner"], ["test/pipeline"]]],
  [/^src\/run\/schedule_/, [["test/schedule", "test/http/schedule", "test/pipeline/schedul"], ["test/http"]]],
  [/^src\/run\/notice_/, [["test/journey/notify", "test/pipeline/notices"]]],
  [/^src\/run\//, [["test/run", "test/pipeline", "test/engine/"], [
    "test/http/task",
    "test/http/run_limit",
    "test/http/message",
    "test/question/model",
    "test/schedule",
    "test/runner",
    "test/journey/secrets",
    "test/journey/gates",
  ]]],
  [/^src\/api\//, [["test/http"], ["test/journey", "test/cli"]]],
  [/^src\/pipeline\//, [["test/pipeline"], ["test/http"], ["test/journey"]]],
];
const REST: readonly string[][] = [["test/domain", "test/engine", "test/base", "test/config"], ["test/http"]];
// Where the noun of a file is not the name of its test.
const NOUNS: Readonly<Record<string, string>> = {
  inbound: "intake",
  outbound: "message",
  journal: "event",
  execution: "run_limit",
  credential: "login",
  session: "chat",
  authorize: "authenticate",
};

/** Names of tests in groups: what is named after the file comes before what exercises its room. */
export function testsFor(file: string): string[][] {
  const noun = basename(file, ".ts");
  const [first = ""] = noun.split("_");
  const nouns = [noun, first, NOUNS[first]].map((one) => `${one}.test.ts`);
  const slow = /^test\/(journey|contract|alone|house|build)\//;
  const named = sourceFiles("test").filter((one) => nouns.includes(basename(one)) && !slow.test(one));
  const groups = ROOMS.find(([room]) => room.test(file))?.[1] ?? REST;
  return [named, ...groups.map((group) => [...group])].filter((group) => group.length > 0);
}
