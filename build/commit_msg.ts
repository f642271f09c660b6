// Checks the subjects of commits: `<area>: <imperative>`, at most 72 characters (CONTRIBUTING.md).

const SUBJECT_MAX_CHARACTERS = 72;

const FORM = /^[a-z][a-z0-9 ,/._-]*: \S.*[^.\s]$/;

const WRITTEN_BY_GIT = /^(Merge |Revert "|fixup! |squash! |amend! )/;

/** Returns the problem of a commit subject, or "". */
export function findSubjectProblem(subject: string): string {
  if (WRITTEN_BY_GIT.test(subject)) return "";
  const length = [...subject].length;
  if (length > SUBJECT_MAX_CHARACTERS) {
    return `it has ${length} characters; shorten it to ${SUBJECT_MAX_CHARACTERS} and move the rest to the body`;
  }
  if (!FORM.test(subject)) {
    return 'write "<area>: <imperative>" without a period, such as "outbox: retry once"';
  }
  if (subject.startsWith("review:")) return 'name the part that changed instead of "review"';
  return "";
}

async function readSubjects(args: string[]): Promise<string[]> {
  const [file = "", range = ""] = args;
  if (file !== "--range") {
    const lines = (await Deno.readTextFile(file)).split("\n").filter((line) => !line.startsWith("#"));
    return [lines.find((line) => line.trim() !== "") ?? ""];
  }
  const { stdout, success } = await new Deno.Command("git", { args: ["log", "--format=%s", range] }).output();
  if (!success) throw new Error(`Cannot read the commits: git log ${range} failed`);
  return new TextDecoder().decode(stdout).split("\n").filter((line) => line !== "");
}

if (import.meta.main) {
  const subjects = await readSubjects(Deno.args);
  const wrong = subjects.map((subject) => ({ subject, problem: findSubjectProblem(subject) }))
    .filter(({ problem }) => problem !== "");
  for (const { subject, problem } of wrong) {
    console.error(`Cannot accept the subject "${subject}": ${problem}.`);
  }
  if (wrong.length > 0) Deno.exit(1);
}
