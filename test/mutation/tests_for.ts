import { basename } from "node:path";
import { sourceFiles } from "../harness/tree.ts";

/** What exercises a room, nearest and fastest first; one list is run after the other until a test fails. */
const ROOMS: readonly [RegExp, readonly string[][]][] = [
  [/^src\/store\//, [["test/store"], ["test/http", "test/pipeline"], ["test/journey"]]],
  [/^src\/http\/(auth|lingering|listener)/, [["test/http/auth", "test/http/token", "test/http/login"], [
    "test/http",
  ]]],
  [/^src\/http\//, [["test/http"], ["test/contract", "test/cli"], ["test/journey"]]],
  [/^src\/files\//, [["test/files", "test/http/upload", "test/http/path"], ["test/journey"]]],
  [/^src\/platform\//, [["test/platform", "test/pipeline"], ["test/http"]]],
  [/^src\/run\//, [["test/run"], ["test/pipeline", "test/engine"], ["test/http", "test/journey"]]],
  [/^src\/api\//, [["test/http"], ["test/journey", "test/cli"]]],
  [/^src\/pipeline\//, [["test/pipeline"], ["test/http"], ["test/journey"]]],
];
const REST: readonly string[][] = [["test/domain", "test/engine", "test/base", "test/config"], ["test/http"]];

/** Names of tests in groups: what is named after the file comes before what exercises its room. */
export function testsFor(file: string): string[][] {
  const noun = basename(file, ".ts");
  const named = sourceFiles("test").filter((one) => basename(one) === `${noun}.test.ts`);
  const groups = ROOMS.find(([room]) => room.test(file))?.[1] ?? REST;
  return [named, ...groups.map((group) => [...group])].filter((group) => group.length > 0);
}
