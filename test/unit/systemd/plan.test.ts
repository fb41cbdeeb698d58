import { describe, expect, it } from 'vitest';
import type { UnitFacts } from '../../../src/lib/systemd/facts.ts';
import { describeChange, planUnits } from '../../../src/lib/systemd/plan.ts';

const nothing: UnitFacts = { dropIns: new Map(), enabled: new Set() };
const tick = { unit: 'reeve-reconcile.timer', text: '[Timer]\nOnUnitInactiveSec=45s\n' };
const caddy = { unit: 'caddy.service', text: '[Service]\nRestart=always\n' };

describe('the plan for the units', () => {
  it('is empty for an unchanged configuration on a machine that has it', () => {
    expect(planUnits({ dropIns: [], enabled: [] }, nothing)).toEqual([]);
    const facts = { dropIns: new Map([[tick.unit, tick.text]]), enabled: new Set(['reeve-app.target']) };
    expect(planUnits({ dropIns: [tick], enabled: ['reeve-app.target'] }, facts)).toEqual([]);
  });

  it('writes what is missing and switches on what is wanted, the balancer’s socket before its service', () => {
    const enabled = [
      'reeve-balancer.service',
      'reeve-balancer.socket',
      'reeve-edge.target',
      'reeve-app.target',
    ];
    expect(planUnits({ dropIns: [tick, caddy], enabled }, nothing)).toEqual([
      { kind: 'write', ...tick, was: undefined },
      { kind: 'write', ...caddy, was: undefined },
      { kind: 'enable', unit: 'reeve-app.target' },
      { kind: 'enable', unit: 'reeve-edge.target' },
      { kind: 'enable', unit: 'reeve-balancer.socket' },
      { kind: 'enable', unit: 'reeve-balancer.service' },
    ]);
  });

  it('takes the drop-in of another’s unit away, and switches the balancer off, when the role goes', () => {
    const facts = {
      dropIns: new Map([[caddy.unit, caddy.text]]),
      enabled: new Set([
        'reeve-app.target',
        'reeve-edge.target',
        'reeve-balancer.socket',
        'reeve-balancer.service',
      ]),
    };
    expect(planUnits({ dropIns: [], enabled: ['reeve-app.target'] }, facts)).toEqual([
      { kind: 'remove', unit: 'caddy.service', was: caddy.text },
      { kind: 'disable', unit: 'reeve-edge.target' },
      { kind: 'disable', unit: 'reeve-balancer.socket' },
      { kind: 'disable', unit: 'reeve-balancer.service' },
    ]);
  });

  it('replaces what differs, removes what is left over, switches off what is not wanted', () => {
    const old = '[Timer]\nOnUnitInactiveSec=30s\n';
    const dropIns = new Map([
      [tick.unit, old],
      ['reeve-heartbeat.timer', 'x'],
    ]);
    const facts = { dropIns, enabled: new Set(['reeve-app.target', 'reeve-edge.target']) };
    expect(planUnits({ dropIns: [tick], enabled: ['reeve-app.target'] }, facts)).toEqual([
      { kind: 'write', ...tick, was: old },
      { kind: 'remove', unit: 'reeve-heartbeat.timer', was: 'x' },
      { kind: 'disable', unit: 'reeve-edge.target' },
    ]);
  });

  it('is told line by line', () => {
    const change = { kind: 'write', ...tick, was: '[Timer]\nOnUnitInactiveSec=30s\n' } as const;
    expect(describeChange(change, (unit) => `/etc/${unit}`)).toEqual([
      '/etc/reeve-reconcile.timer:',
      '- OnUnitInactiveSec=30s',
      '+ OnUnitInactiveSec=45s',
    ]);
  });

  it('is told where no line differs, only their number or order', () => {
    const change = { kind: 'write', ...tick, was: `${tick.text}${tick.text}` } as const;
    expect(describeChange(change, (unit) => `/etc/${unit}`)).toEqual([
      '/etc/reeve-reconcile.timer:',
      '~ the same lines, in another order, number or spacing',
    ]);
  });
});
