import { Link } from "wouter-preact";
import { api, askPage, type Question } from "../../live/api.ts";
import { inbox, type InboxItem } from "../../live/inbox.ts";
import { useOpenQuestions } from "../../live/questions.ts";
import { useResource } from "../../live/resource.ts";
import { workerName, workers } from "../../live/workers.ts";
import { AnswerForm } from "../../parts/answer_form.tsx";
import { firstLine } from "../../parts/format.ts";
import { Heading } from "../../parts/heading.tsx";
import { Empty, Loading, Waiting } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { StartPage } from "../start/start.tsx";
import { ExecutionRow } from "../work/execution_row.tsx";
import { failureWord } from "../work/failure.ts";

const RUNNING_SHOWN = 20;

/** What needs a person, and what goes on; an empty service begins here (contract 17). */
export function InboxPage() {
  const all = workers.value;
  if (all === undefined) return <Loading />;
  if (all.length === 0) return <StartPage />;
  return <Inbox />;
}

function Inbox() {
  const running = useResource("running", (signal) => {
    const query = { status: "pending,running", page_size: RUNNING_SHOWN };
    return askPage(api.GET("/api/executions", { params: { query }, signal }));
  }, ({ kind }) => kind.startsWith("execution."));
  const items = inbox.value;
  const questions = useOpenQuestions();
  const runs = running.data?.items;
  return (
    <>
      <Heading title="Inbox">
        <Link href="/console/chat" class="button primary">Open the chat</Link>
      </Heading>
      <div class="scrolled">
        <section>
          <h2>Needs you</h2>
          {items === undefined ? <Loading /> : items.length === 0
            ? (
              <Empty title="Nothing needs you.">
                <p>Failures and what could not be delivered appear here.</p>
              </Empty>
            )
            : <Items items={items} questions={questions ?? []} />}
        </section>
        <section>
          <h2>Going on now</h2>
          {runs === undefined
            ? <Waiting refusal={running.refusal} />
            : runs.length === 0
            ? <p class="quiet">Nothing runs at the moment.</p>
            : <div class="list">{runs.map((one) => <ExecutionRow key={one.id} execution={one} />)}</div>}
        </section>
      </div>
    </>
  );
}

function Items({ items, questions }: { items: readonly InboxItem[]; questions: readonly Question[] }) {
  return (
    <div class="list">
      {questions.map((one) => <QuestionRow key={one.id} question={one} />)}
      {items.filter(({ kind }) => kind !== "question").map((item) => (
        <ItemRow
          key={keyOf(item)}
          item={item}
        />
      ))}
    </div>
  );
}

function QuestionRow({ question }: { question: Question }) {
  const { text, worker_id, session_key, created_at } = question;
  const who = workerName(worker_id) || "Somebody";
  const chat = session_key.startsWith("local:")
    ? `/console/chat/${session_key.slice("local:".length)}`
    : null;
  return (
    <div class="row asked">
      <Status of="question" bare />
      <span class="row-main">
        <span class="asked-text">{text}</span>
        <span class="row-note">
          {who} asks{chat !== null && (
            <>
              {" "}in <Link href={chat}>a conversation</Link>
            </>
          )}
        </span>
        <AnswerForm question={question} />
      </span>
      <span class="row-side">
        <Ago at={created_at} />
      </span>
    </div>
  );
}

function keyOf({ kind, execution_id, message_id, worker_id, task_id, engine, at }: InboxItem): string {
  return [kind, execution_id, message_id, worker_id, task_id, engine, at].join(" ");
}

function ItemRow({ item }: { item: InboxItem }) {
  const { href, status, title, note } = shownAs(item);
  return (
    <Link href={href} class="row">
      <Status of={status} bare />
      <span class="row-main">
        <span class="row-title">{firstLine(title)}</span>
        <span class="row-note">{firstLine(note)}</span>
      </span>
      {item.kind !== "engine_limited" && (
        <span class="row-side">
          <Ago at={item.at} />
        </span>
      )}
    </Link>
  );
}

interface Shown {
  /** Where it is looked at, and where its action is. */
  href: string;
  status: string;
  title: string;
  note: string;
}

function shownAs(item: InboxItem): Shown {
  const { title, detail, worker_name, worker_id, execution_id, message_id, task_id } = item;
  switch (item.kind) {
    case "question":
      return { href: "/console", status: "question", title, note: `${worker_name} asks` };
    case "run_failed": {
      const failure = failureWord(/^\w+/.exec(detail)?.[0] ?? "");
      return {
        href: `/console/executions/${execution_id}`,
        status: "failed",
        title,
        note: `${worker_name} · ${failure}`,
      };
    }
    case "message_failed":
      return { href: messagePath(message_id), status: "failed", title, note: detail };
    case "undelivered":
      return { href: messagePath(message_id), status: "undelivered", title, note: detail };
    case "engine_limited":
      return { href: "/console/system", status: "limited", title: `${title} waits`, note: detail };
    case "worker_paused":
      return {
        href: `/console/workers/${worker_id}`,
        status: "paused",
        title: `${worker_name} is paused`,
        note: "Its tasks wait until it goes on",
      };
    case "schedule_paused":
      return { href: `/console/schedules/${task_id}`, status: "paused", title, note: detail };
  }
}

function messagePath(id: string): string {
  return `/console/messages/${encodeURIComponent(id)}`;
}
