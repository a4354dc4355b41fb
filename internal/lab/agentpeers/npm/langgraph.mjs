// The loop as a graph of LangGraph.js, with a checkpointer on SQLite: node langgraph.mjs FILE ROUNDS BYTES DURABILITY [NOTES].
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { Annotation, END, MessagesAnnotation, Send, START, StateGraph } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import { calls, dies, fact, Meter, note } from './loop.mjs';

const [file, roundsText, bytesText, durability, notes] = process.argv.slice(2);
const rounds = Number(roundsText), bytes = Number(bytesText);
const meter = new Meter();

const State = Annotation.Root({ ...MessagesAnnotation.spec });

async function planner({ messages }) {
  const round = messages.filter((m) => m.getType() === 'ai').length;
  note(notes, `planner ${round}`);
  meter.asked(JSON.stringify(messages.map((m) => [m.getType(), m.content, m.tool_calls ?? m.tool_call_id])));
  if (round >= rounds) return { messages: [new AIMessage({ content: 'done', id: `a${round}` })] };
  const tool_calls = [];
  for (let i = 0; i < calls; i++) tool_calls.push({ id: `c${round}-${i}`, name: 'fact', args: { round, call: i }, type: 'tool_call' });
  return { messages: [new AIMessage({ content: '', tool_calls, id: `a${round}` })] };
}

// Each call is a task of its own, so that those that have returned are kept by themselves.
async function tool({ call }) {
  if (call.args.call === 1) await new Promise((done) => setTimeout(done, process.env.DIE_IN_ROUND ? 100 : 0));
  dies(call.args.round, call.args.call);
  note(notes, `tool ${call.args.round} ${call.args.call}`);
  return { messages: [new ToolMessage({ content: fact(call.args.round, bytes), tool_call_id: call.id, id: call.id })] };
}

const saver = SqliteSaver.fromConnString(file);
const graph = new StateGraph(State)
  .addNode('planner', planner)
  .addNode('tool', tool)
  .addEdge(START, 'planner')
  .addConditionalEdges('planner', ({ messages }) => {
    const last = messages.at(-1);
    return last.tool_calls?.length ? last.tool_calls.map((call) => new Send('tool', { call })) : END;
  })
  .addEdge('tool', 'planner')
  .compile({ checkpointer: saver });

const config = { configurable: { thread_id: 'loop' }, recursionLimit: 3 * rounds + 10, durability };
const there = await saver.getTuple(config);
await graph.invoke(there ? null : { messages: [new HumanMessage({ content: 'go', id: 'h' })] }, config);

const sizes = saver.db.prepare('SELECT (SELECT coalesce(sum(length(checkpoint) + length(metadata)), 0) FROM checkpoints) + (SELECT coalesce(sum(length(value)), 0) FROM writes) AS written').get();
console.log(JSON.stringify({ ...meter.figures(), written: sizes.written }));
