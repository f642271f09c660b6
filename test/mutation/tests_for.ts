import { basename } from "node:path";
import { listSourceFiles } from "../harness/house/tree.ts";

/** Tests for each folder, nearest and fastest first. The next group runs only when no test of the previous one fails. */
const FOLDERS: readonly [RegExp, readonly string[][]][] = [
  [
    /^src\/store\/db\//,
    [["test/store"], ["test/http/work/task", "test/schedule", "test/http/system/event"]],
  ],
  [/^src\/store\//, [
    ["test/http/work/task", "test/http/chat/chat", "test/pipeline"],
    ["test/http", "test/store", "test/run"],
    ["test/question", "test/runner", "test/engine", "test/schedule", "test/platform"],
  ]],
  [/^src\/http\/auth/, [[
    "test/http/account/auth",
    "test/http/account/token",
    "test/http/account/access",
    "test/http/account/scope",
  ], [
    "test/http/server/conventions",
    "test/http/server/stream",
    "test/journey/forbidden",
  ]]],
  [/^src\/http\//, [["test/http"], ["test/contract", "test/cli"], ["test/journey"]]],
  [/^src\/files\//, [["test/files", "test/http/chat/upload", "test/http/server/path"], [
    "test/http/chat/chat",
    "test/http/workers/worker",
    "test/journey/load/strace",
  ]]],
  [/^src\/platform\//, [["test/platform", "test/pipeline"], ["test/http"]]],
  [/^src\/run\/remote\//, [["test/runner"], ["test/pipeline"]]],
  [/^src\/run\/schedule_/, [["test/schedule", "test/http/work/schedule", "test/pipeline/dispatch/schedul"], [
    "test/http",
  ]]],
  [/^src\/run\/local\/notice_/, [["test/journey/start/notify", "test/pipeline/delivery/notices"]]],
  [/^src\/run\//, [["test/run", "test/pipeline", "test/engine/"], [
    "test/http/work/task",
    "test/http/work/run_limit",
    "test/http/chat/message",
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
// Files whose tests have another name.
const NOUNS: Readonly<Record<string, string>> = {
  inbound: "intake",
  outbound: "message",
  journal: "event",
  execution: "run_limit",
  credential: "login",
  session: "chat",
  authorize: "authenticate",
};

/** Returns groups of test names: first those named after the file, then those of its folder. */
export function findTests(file: string): string[][] {
  const noun = basename(file, ".ts");
  const [first = ""] = noun.split("_");
  const nouns = [noun, first, NOUNS[first]].map((one) => `${one}.test.ts`);
  const slow = /^test\/(journey|contract|alone|house|build)\//;
  const named = listSourceFiles("test").filter((one) => nouns.includes(basename(one)) && !slow.test(one));
  const groups = FOLDERS.find(([folder]) => folder.test(file))?.[1] ?? REST;
  return [named, ...groups.map((group) => [...group])].filter((group) => group.length > 0);
}
