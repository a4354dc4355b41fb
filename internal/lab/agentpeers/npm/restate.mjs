// The loop as a handler of Restate's SDK: node restate.mjs PORT [NOTES] serves it.
import './with-resolvers.mjs';
import * as restate from '@restatedev/restate-sdk';
import { calls, dies, fact, Meter, note } from './loop.mjs';

const [port, notes] = process.argv.slice(2);

const loop = restate.service({
  name: 'loop',
  handlers: {
    run: async (ctx, { rounds, bytes }) => {
      const meter = new Meter();
      const messages = [['human', 'go']];
      for (let round = 0; ; round++) {
        const answer = await ctx.run(`plan ${round}`, () => {
          note(notes, `planner ${round}`);
          meter.asked(JSON.stringify(messages));
          if (round >= rounds) return { output: 'done' };
          return { calls: Array.from({ length: calls }, (_, call) => ({ round, call })) };
        });
        if (answer.output) return meter.figures();
        const results = await restate.RestatePromise.all(answer.calls.map(({ call }) => ctx.run(`tool ${round} ${call}`, async () => {
          if (call === 1) await new Promise((done) => setTimeout(done, process.env.DIE_IN_ROUND ? 100 : 0));
          dies(round, call);
          note(notes, `tool ${round} ${call}`);
          return fact(round, bytes);
        })));
        messages.push(['ai', answer.calls], ...results.map((r, i) => ['tool', r, i]));
      }
    },
  },
});

await restate.serve({ services: [loop], port: Number(port) });
console.log('ready');
