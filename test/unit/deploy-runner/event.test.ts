import { describe, expect, it } from 'vitest';
import {
  type ActionResult,
  buildResultEvent,
  eventFileName,
  parseEventFileName,
  parseResultEvent,
} from '../../../src/lib/deploy-runner/event.ts';

const result: ActionResult = {
  ...{ node: 'vps', actionId: 'redeploy-vps-grafana', actionType: 'redeploy', service: 'grafana', key: 'k' },
  ...{ status: 'completed', exitCode: 0, outputTail: 'done\n' },
  ...{ startedAt: '2026-08-03T10:00:00.000Z', finishedAt: '2026-08-03T10:00:12.500Z' },
};

describe('a result’s event (D9)', () => {
  it('has the fields of the events that the control side knows', () => {
    const text = buildResultEvent(result);
    expect(text.endsWith('}\n')).toBe(true);
    expect(JSON.parse(text)).toStrictEqual({
      timestamp: '2026-08-03T10:00:12.500Z',
      node: 'vps',
      type: 'action_result',
      severity: 'info',
      source: 'deploy-runner',
      service: 'grafana',
      correlation_id: 'redeploy-vps-grafana',
      payload: {
        ...{ action_id: 'redeploy-vps-grafana', action_type: 'redeploy', status: 'completed', exit_code: 0 },
        ...{ started_at: '2026-08-03T10:00:00.000Z', finished_at: '2026-08-03T10:00:12.500Z' },
        ...{ duration_seconds: 12.5, output_tail: 'done\n', key: 'k' },
      },
    });
  });

  it('of what never started says so, and reads back as it was', () => {
    const { exitCode: _, startedAt: __, outputTail: ___, service: ____, ...rest } = result;
    const refused: ActionResult = { ...rest, status: 'failed', reason: 'rejected: node is "pi"' };
    const event = JSON.parse(buildResultEvent(refused)) as Record<string, unknown>;
    expect(event).toMatchObject({
      ...{ severity: 'error', service: '' },
      payload: { exit_code: null, started_at: refused.finishedAt, duration_seconds: 0 },
    });
    const bytes = Buffer.from(buildResultEvent(refused));
    expect(parseResultEvent(bytes)).toStrictEqual({ ...refused, startedAt: refused.finishedAt });
    expect(parseResultEvent(Buffer.from(buildResultEvent(result)))).toStrictEqual(result);
  });

  it('has no negative length where the clock was set back', () => {
    const back = { ...result, finishedAt: '2026-08-03T09:00:00.000Z' };
    expect(JSON.parse(buildResultEvent(back))).toMatchObject({ payload: { duration_seconds: 0 } });
  });

  it('of the seed’s own runner is read without what it lacks', () => {
    const event = {
      ...{ timestamp: '2026-08-03T10:00:00+00:00', node: 'vps', type: 'action_result', extra: 1 },
      payload: { action_id: 'redeploy-vps-grafana', status: 'failed' },
    };
    expect(parseResultEvent(Buffer.from(JSON.stringify(event)))).toStrictEqual({
      ...{ node: 'vps', actionId: 'redeploy-vps-grafana', actionType: 'redeploy', status: 'failed' },
      finishedAt: '2026-08-03T10:00:00+00:00',
    });
  });

  it.each<[string, object | string, string]>([
    ['another type', { type: 'service_healthy' }, 'type is not "action_result"'],
    ['no status', { payload: { action_id: 'a' } }, 'payload.status is neither'],
    ['a status of its own', { payload: { action_id: 'a', status: 'done' } }, 'payload.status is neither'],
    ['an id that climbs', { payload: { action_id: '../a', status: 'failed' } }, 'payload.action_id is no id'],
    ['a node that climbs', { node: '../vps' }, "node is no node's name"],
    ['no instant', { timestamp: 'soon' }, 'timestamp is no instant'],
    ['cut JSON', '{"node":', 'it is not whole JSON'],
    ['a list', '[]', 'it is no object'],
  ])('with %s is refused by its field', (_, more, problem) => {
    const whole = JSON.parse(buildResultEvent(result)) as object;
    const text = typeof more === 'string' ? more : JSON.stringify({ ...whole, ...more });
    expect(() => parseResultEvent(Buffer.from(text))).toThrow(`invalid event: ${problem}`);
  });
});

describe('the name of an event’s file', () => {
  it('sorts after that of every earlier one', () => {
    const times = [0, 7, 999, 1_785_700_000_000, 1_785_700_000_001, 9_999_999_999_999];
    const names = times.map((ms) => eventFileName('vps', ms, 'redeploy-vps-grafana'));
    expect([...names].sort()).toEqual(names);
    expect(names[3]).toBe('evt-vps-1785700000000-action_result-redeploy-vps-grafana.json');
  });

  it.each(['vps', 'pi-4', 'a-1785700000000-action_result-b'])('of node %j reads back', (node) => {
    const about = { node, epochMs: 1_785_700_000_000, actionId: 'redeploy-x' };
    expect(parseEventFileName(eventFileName(node, about.epochMs, about.actionId))).toEqual(about);
  });

  it.each([
    'evt-vps-1785700000.json',
    '.evt-vps-1785700000000-action_result-a.json',
    'x',
    'evt-../x-1785700000000-action_result-a.json',
  ])('%j is none', (name) => expect(parseEventFileName(name)).toBeUndefined());
});
