// Starts a Restate server on the loopback and the loop beside it, in turns for several lengths of it, and prints what they
// came to, one JSON document a line: node restate-run.mjs FOLDER BYTES [ROUNDS…]. With a round to die in (DIE_IN_ROUND)
// the process of the loop is killed in it, and started again.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const [folder, bytes, ...lengths] = process.argv.slice(2);
const here = import.meta.dirname;
const env = {
  ...process.env, RESTATE_DISABLE_TELEMETRY: 'true', RESTATE_BASE_DIR: join(folder, 'data'), RESTATE_NODE_NAME: 'lab',
  RESTATE_BIND_ADDRESS: '127.0.0.1:15122', RESTATE_ADVERTISED_ADDRESS: 'http://127.0.0.1:15122', RESTATE_LOG_FILTER: 'off',
  RESTATE_INGRESS__BIND_ADDRESS: '127.0.0.1:18080', RESTATE_ADMIN__BIND_ADDRESS: '127.0.0.1:19070',
};
const notes = join(folder, 'notes');
const server = spawn(join(here, 'node_modules/@restatedev/restate-server-linux-x64/bin/restate-server'), { env, stdio: 'ignore' });
let ended = false;
let service;
function serve(env) {
  service = spawn(process.execPath, [join(here, 'restate.mjs'), '19080', notes], { env, stdio: 'ignore' });
  service.on('exit', () => ended || serve({ ...process.env, DIE_IN_ROUND: '' }));
}
serve(process.env);

async function until(what) {
  for (let i = 0; i < 600; i++) {
    try {
      return await what();
    } catch {
      await new Promise((done) => setTimeout(done, 100));
    }
  }
  throw new Error('it did not come up');
}

async function post(url, body) {
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

// journal is how many bytes the journals of all invocations have; the server keeps them for a while.
async function journal() {
  const answer = await fetch('http://127.0.0.1:19070/query', {
    method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query: 'SELECT coalesce(sum(raw_length), 0) AS bytes FROM sys_journal' }),
  });
  return answer.ok ? (await answer.json()).rows[0].bytes : console.error(await answer.text()) ?? 0;
}

try {
  await until(() => post('http://127.0.0.1:19070/deployments', { uri: 'http://127.0.0.1:19080' }));
  if (!process.env.DIE_IN_ROUND) await post('http://127.0.0.1:18080/loop/run', { rounds: 1, bytes: 16 }); // warm up
  let before = await journal();
  for (const rounds of lengths) {
    const figures = await post('http://127.0.0.1:18080/loop/run', { rounds: Number(rounds), bytes: Number(bytes) });
    const written = await journal();
    console.log(JSON.stringify({ ...figures, written: written - before }));
    before = written;
  }
} finally {
  ended = true;
  service.kill('SIGKILL');
  server.kill('SIGKILL');
}
