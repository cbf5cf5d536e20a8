import { expect, it } from 'vitest';
import { isForCapability, mayReceive } from '../../src/secrets/receivers.ts';

it.each<[string, string, boolean]>([
  ['publish.web', 'publish.web', true],
  ['publish.web', 'publish.web2', false],
  ['model.*', 'model.fast', true],
  ['model.*', 'models.fast', false],
  ['*', 'anything', true],
])('%s allows %s: %s', (pattern, capability, isAllowed) => {
  expect(isForCapability({ capabilities: ['none', pattern] }, capability)).toBe(isAllowed);
});

const own = { endpoint: 'http://10.0.0.7:8080', owner_project: 'prj_own' };
const foreign = { endpoint: 'http://10.0.0.7:8080', owner_project: 'prj_other' };

it('without hosts, only the instances of the project receive it', () => {
  expect(mayReceive({ hosts: [] }, 'prj_own', own)).toBe(true);
  expect(mayReceive({ hosts: [] }, 'prj_own', foreign)).toBe(false);
  expect(mayReceive({ hosts: [] }, 'prj_own', { endpoint: own.endpoint })).toBe(false);
});

it.each<[string, string, boolean]>([
  ['10.0.0.7', 'http://10.0.0.7:8080', true],
  ['10.0.0.7:8080', 'http://10.0.0.7:8080', true],
  ['10.0.0.7:8080', 'http://10.0.0.7:8081', false],
  ['api.example.com', 'https://api.example.com/v1', true],
  ['api.example.com', 'https://API.example.com', true],
  ['api.example.com', 'https://evil.com/api.example.com', false],
  ['api.example.com', 'https://api.example.com.evil.com', false],
  ['api.example.com', 'https://api.example.com@evil.com', false],
  ['*.example.com', 'https://a.b.example.com', true],
  ['*.example.com', 'https://example.com', false],
  ['*.example.com', 'https://badexample.com', false],
  ['*.example.com:8080', 'https://a.example.com:8080', true],
  ['*.example.com:8080', 'https://a.example.com:8081', false],
  ['[::1]:8080', 'http://[::1]:8080', true],
])('the host %s and an instance at %s: %s', (host, endpoint, isAllowed) => {
  expect(mayReceive({ hosts: ['other.test', host] }, 'prj_own', { endpoint, owner_project: 'prj_x' })).toBe(
    isAllowed,
  );
  expect(mayReceive({ hosts: ['other.test', host] }, 'prj_own', { endpoint, owner_project: 'prj_own' })).toBe(
    isAllowed,
  );
});
