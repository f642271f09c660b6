import type { Schemas } from "../../live/api.ts";
import { inbox } from "../../live/inbox.ts";
import { buildItemKey } from "../../live/notifications.ts";
import { useOpenQuestions } from "../../live/questions.ts";
import { useGet } from "../../live/resource.ts";
import { findWorkerName, workers } from "../../live/workers.ts";
import { AnswerForm } from "../../parts/answer_form.tsx";
import { LinkButton } from "../../parts/button.tsx";
import { Empty, Loading } from "../../parts/notice.tsx";
import { Heading, Section } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { WelcomePage } from "../workers/welcome.tsx";
import { ExecutionList } from "./execution_row.tsx";
import { InboxRow } from "./inbox_item.tsx";

const RUNNING_SHOWN = 20;

export function Page() {
  const all = workers.value;
  if (all === undefined) return <Loading />;
  return all.length === 0 ? <WelcomePage /> : <Inbox />;
}

function Inbox() {
  const query = { status: "pending,running", page_size: RUNNING_SHOWN };
  const running = useGet("/api/executions", { query }, /^execution\./);
  const items = inbox.value;
  const questions = useOpenQuestions() ?? [];
  return (
    <>
      <Heading title="Inbox">
        <LinkButton href="/console/chat" class="primary">Open the chat</LinkButton>
      </Heading>
      <div class="scrolled">
        <Section title="Needs attention">
          {items === undefined
            ? <Loading />
            : items.length === 0
            ? (
              <Empty title="Nothing needs your attention.">
                <p>Questions, failures, undelivered replies and blocked or paused work appear here.</p>
              </Empty>
            )
            : (
              <div class="list">
                {questions.map((one) => <QuestionRow key={one.id} question={one} />)}
                {items.filter(({ kind }) => kind !== "question").map((item) => (
                  <InboxRow key={buildItemKey(item)} item={item} />
                ))}
              </div>
            )}
        </Section>
        <Section title="Running now">
          <ExecutionList list={running} empty="No active runs." />
        </Section>
      </div>
    </>
  );
}

function QuestionRow({ question }: { question: Schemas["Question"] }) {
  const { text, worker_id, session_key, created_at } = question;
  return (
    <div class="row asked">
      <Status value="question" bare />
      <span class="row-main">
        <span class="asked-text">{text}</span>
        <span class="row-note">
          {findWorkerName(worker_id) || "A worker"} asks in <ConversationLink sessionKey={session_key} />,
          {" "}
          <Ago at={created_at} />
        </span>
        <AnswerForm question={question} />
      </span>
    </div>
  );
}
