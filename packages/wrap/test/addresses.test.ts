/** The parts of an address and a header that callers may set, and the parts of an address that messages show. */
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type ProviderServer, startProviderServer } from '../../../test/support/provider-server.ts';
import { call, findingsOf, linesOf, startWrapped } from './support.ts';

let server: ProviderServer;
beforeEach(async () => {
  server = await startProviderServer();
  onTestFinished(() => server.close());
});

function anHttp(part: string, more = ''): string {
  return `kind: http
name: remote
version: 1.0.0
description: Asks a service.
input: {type: object}
output: {type: object}
${more}http:
${part}result: {path: "{{ answer.path }}"}
`;
}

describe('a path', () => {
  const at = (path: string): string => anHttp(`  url: "${server.url}/echo/${path}"\n`);

  it.each([
    ['{{ input.id }}', { id: '..' }],
    ['{{ input.id }}', { id: '.' }],
    ['{{ input.id }}', { id: '' }],
    ['{{ input.id }}', { id: '%2e%2E' }],
    ['{{ input.id }}', { id: '%252e%252e' }],
    ['{{ input.id }}', { id: `%${'25'.repeat(50)}2e.` }],
    ['{{ input.id }}', { id: '../../admin' }],
    ['{{ input.id }}', { id: 'a/../../b' }],
    ['{{ input.id }}', { id: '..\\..\\x' }],
    ['{{ input.id }}', { id: '..;a' }],
    ['{{ input.a }}{{ input.b }}/x', { a: '.', b: '.' }],
    ['{{ input.a }}{{ input.b }}/x', { a: '%', b: '2e' }],
    ['.{{ input.id }}', { id: '.' }],
    ['{{ input.a }}/{{ input.b }}/{{ input.c }}', { a: 'ok', b: '..', c: '..' }],
    ['{{ input.id }}?size=1', { id: '..' }],
    ['{{ input.id }}#end', { id: '..' }],
  ])('is not left by %s with %j', async (path, input) => {
    const instance = await startWrapped(at(path));
    expect(await call(instance, input)).toMatchObject({
      status: 422,
      body: { error: '/http/url: a value makes a segment of the path empty, . or .., which is another path' },
    });
    expect(server.requests).toEqual([]);
  });

  it.each([
    ['{{ input.id }}', { id: '...' }, '/echo/...'],
    ['{{ input.id }}', { id: 'a..b' }, '/echo/a..b'],
    ['{{ input.id }}', { id: 'a/b' }, '/echo/a%2Fb'],
    ['{{ input.id }}', { id: '100%' }, '/echo/100%25'],
    ['v{{ input.id }}', { id: '' }, '/echo/v'],
    ['{{ input.id }}?at={{ input.at }}', { id: 7, at: '..' }, '/echo/7?at=..'],
    ['../echo/{{ input.id }}', { id: 'x' }, '/echo/x'],
  ])('may be %s with %j', async (path, input, expected) => {
    expect((await call(await startWrapped(at(path)), input)).body.output).toEqual({ path: expected });
  });

  it('of a job holds the same', async () => {
    const poll = `  poll: {url: "\${URL}/jobs/{{ input.id }}", done: "true", every: 10ms}\n`;
    const text = anHttp(`  url: "${server.url}/jobs"\n${poll}`);
    const instance = await startWrapped(text, { environment: { URL: server.url } });
    const answer = await call(instance, { id: '..' });
    expect(answer).toMatchObject({ status: 422, code: 'path_refused' });
    expect(server.requests.map(({ path }) => path)).toEqual(['/jobs']);
  });
});

describe('a header', () => {
  const text = () => anHttp(`  url: "${server.url}/echo"\n  headers: {x-user: "{{ input.who ?? null }}"}\n`);

  it.each([
    ['beyond Latin-1', 'Zoë € 漢'],
    ['an emoji', '👋'],
    ['a line break', 'a\r\nx-admin: 1'],
    ['one line feed', 'a\nb'],
    ['a control character', 'a\u0000b'],
    ['a separator of lines', 'a\u2028b'],
    ['an object', { a: 1 }],
    ['a list', ['a']],
  ])('of %s is the fault of the input', async (_what, who) => {
    const instance = await startWrapped(text());
    const answer = await call(instance, { who });
    expect(answer).toMatchObject({ status: 422, code: null });
    expect(answer.body.error).toMatch(/^\/http\/headers\/x-user: /);
    expect(server.requests).toEqual([]);
  });

  it.each([
    ['Zoë', 'ZoÃ«'],
    [' a\n', 'a'],
    [7, '7'],
    [true, 'true'],
  ])('may be %j', async (who, seen) => {
    expect((await call(await startWrapped(text()), { who })).status).toBe(200);
    expect(Buffer.from(String(server.requests[0]?.headers['x-user']), 'latin1').toString('latin1')).toBe(
      who === 'Zoë' ? 'Zoë' : seen,
    );
  });

  it('is checked in the file, without showing it', () => {
    const written = anHttp(`  url: "http://a.example"\n  headers: {authorization: "Bearer \${KEY}"}\n`);
    const findings = findingsOf(written, { KEY: 'secret\nvalue-of-key' });
    expect(linesOf(findings)).toEqual(['9 header_invalid: the text cannot be a header']);
    const token = `kind: cog\nname: a\nversion: 1.0.0\ndescription: x\ninput: {}\noutput: {}\ncog: {base_url: "http://a.example", token: "\${KEY}"}\n`;
    expect(linesOf(findingsOf(token, { KEY: 'sécret €' }))).toEqual([
      '7 value_invalid: the value of the variable cannot be sent in a header',
    ]);
  });
});

describe('a message', () => {
  const hook = () => `${server.url}/services/T0001/B0002/s3cretHookToken`;

  it.each([
    ['a whole address', `\${HOOK}`, `\${HOOK}`],
    ['an address with more', `\${HOOK}/send?x={{ input.id ?? 1 }}`, `\${HOOK}/send`],
    ['an address that is written out', '', '/services/***/***/***'],
  ])('names host and path of %s as the file writes it', async (_what, url, path) => {
    const text = anHttp(`  url: "${url || hook()}"\n`);
    const instance = await startWrapped(text, { environment: { HOOK: hook() } });
    server.refuse(500);
    const { body } = await call(instance, {});
    expect(body.error).toContain(
      `POST ${server.url}${path.startsWith('/') ? path : ` ${path}`} was answered 500`,
    );
    expect(body.error).not.toMatch(/s3cret|T0001|B0002/);
  });

  it.each([
    ['nobody listens', 'http://127.0.0.1:9/hooks/s3cretHookToken?sig=s3cretSignature'],
    ['the name is unknown', 'http://nowhere.invalid/hooks/s3cretHookToken?sig=s3cretSignature'],
  ])('contains no address when %s', async (_what, HOOK) => {
    const { body } = await call(
      await startWrapped(anHttp(`  url: "\${HOOK}"\n`), { environment: { HOOK } }),
      {},
    );
    expect(body.error).toContain(`POST ${new URL(HOOK).origin} \${HOOK} was not answered`);
    expect(body.error).not.toMatch(/s3cret/);
  });

  it('hides a secret address that the other side repeats, also encoded or cut', async () => {
    const address = `${server.url}/text/s3cretHookToken/more?sig=s3cret%2FSignature`;
    const text = anHttp(
      `  url: "\${HOOK}"\n  headers: {x-key: "{{ input.key ?? null }}"}\n`,
      'files: {upload: {}}\n',
    ).replace('{{ answer.path }}', '{{ answer.none }}');
    const instance = await startWrapped(text, { environment: { HOOK: address } });
    for (const told of [
      address,
      encodeURIComponent(address),
      '/text/s3cretHookToken/more',
      'no key s3cret/Signature',
      `${'x'.repeat(595)}s3cretHookToken`,
    ]) {
      server.tell(404, told);
      const { body } = await call(instance, {});
      expect(body.error).toContain('was answered 404');
      expect(body.error).not.toMatch(/s3cr/);
    }
  });

  it('contains no password of an address in `env`', async () => {
    const text = `kind: command
name: script
version: 1.0.0
description: Runs a script.
input: {type: object}
output: {type: object}
command:
  argv: [${JSON.stringify(process.execPath)}, -e, "console.error('refused for user, password hunter22; at ' + process.env.DB); process.exit(1)"]
  env: {DB: "\${DB}"}
`;
    const DB = 'postgres://user:hunter22@db.example/data';
    const { body } = await call(await startWrapped(text, { environment: { DB } }), {});
    expect(body.error).toMatch(/refused for user, password \*\*\*; at \*\*\*$/);
  });

  it('names base addresses of other kinds in the same way', async () => {
    const base = `${server.url}/k3y-of-proxy/v1`;
    const text = `kind: replicate
name: painter
version: 1.0.0
description: Asks a hosted model.
input: {type: object}
output: {type: object}
replicate: {base_url: "\${BASE}", token: "\${TOKEN}", model: owner/name}
`;
    const instance = await startWrapped(text, { environment: { BASE: base, TOKEN: 'a-token' } });
    server.refuse(500);
    expect((await call(instance, {})).body.error).toContain(
      `POST ${server.url} \${BASE}/models/owner/name/predictions was answered 500`,
    );
  });
});
