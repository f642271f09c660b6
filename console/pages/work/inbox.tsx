import { Link } from "wouter-preact";
import { api, askPage, type Question } from "../../live/api.ts";
import { inbox, type InboxItem } from "../../live/inbox.ts";
import { useOpenQuestions } from "../../live/questions.ts";
import { useResource } from "../../live/resource.ts";
import { workerName, workers } from "../../live/workers.ts";
import { AnswerForm } from "../../parts/answer_form.tsx";
import { Heading } from "../../parts/page.tsx";
import { Empty, Loading, Waiting } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { StartPage } from "../workers/welcome.tsx";
import { ExecutionRow } from "./execution_row.tsx";
import { ItemRow } from "./inbox_item.tsx";

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
                <p>
                  Questions, failures, what could not be delivered, and what is paused or held appear here.
                </p>
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
  return (
    <div class="row asked">
      <Status of="question" bare />
      <span class="row-main">
        <span class="asked-text">{text}</span>
        <span class="row-note">
          {who} asks in <ConversationLink sessionKey={session_key} />, <Ago at={created_at} />
        </span>
        <AnswerForm question={question} />
      </span>
    </div>
  );
}

function keyOf(
  { kind, execution_id, message_id, worker_id, engine, task_id, budget_id, at }: InboxItem,
): string {
  return [kind, execution_id, message_id, worker_id, engine, task_id, budget_id, at].join(" ");
}
