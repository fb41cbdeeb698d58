import { describe, expect, it, vi } from 'vitest';
import { parseServices } from '../../../src/lib/deploy-runner/services.ts';
import { onTestFinished } from '../../support/after-test.ts';

describe('services.yaml (D31)', () => {
  it.each<[string, string]>([
    ['a list of names', '- a\n- b\n'],
    ['names under services', 'services: [a, b]\n'],
    ['mappings', '- name: a\n  monitor: false\n- name: b\n'],
    ['mappings under services', 'node: vps\nservices:\n  - {name: a, monitor: false}\n  - {name: b}\n'],
    ['both at once', '- a\n- name: b\n'],
    ['JSON', '["a", {"name": "b"}]'],
  ])('may be %s', (_, text) => expect([...parseServices(text)]).toEqual(['a', 'b']));

  it('may have keys that are no text, which nobody is warned of', () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    expect([...parseServices('? [x, y]\n: z\nservices: [a, b]\n')]).toEqual(['a', 'b']);
    expect(warned).not.toHaveBeenCalled();
  });

  it('may list nothing', () => expect([...parseServices('services: []\n')]).toEqual([]));

  it.each<[string, string, string]>([
    ['empty', '', 'it is no list of services'],
    ['a text', 'a\n', 'it is no list of services'],
    ['a mapping by name', 'a: {}\nb: {}\n', 'it is no list of services'],
    ['services by name', 'services: {a: {}}\n', 'it is no list of services'],
    ['a number', '- a\n- 7\n', 'its entry 2 is neither'],
    ['nothing as name', '- name:\n', 'its entry 1 is neither'],
    ['a list in a list', '- [a]\n', 'its entry 1 is neither'],
    ['broken', 'a: [\n', 'it is no YAML'],
    ['two documents', '- a\n---\n- b\n', 'it is no YAML'],
    [
      'a bomb',
      `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nservices: [*c,*c,*c]\n`,
      'it is no YAML',
    ],
    ['of many levels', '['.repeat(20_000), 'it is nested too deeply'],
  ])('that is %s lists nothing and is refused', (_, text, problem) => {
    expect(() => parseServices(text)).toThrow(problem);
  });

  it.each([1_000, 1_400, 1_800, 2_200, 2_600, 3_000, 4_000])('of %d levels is refused in words', (levels) => {
    const nested = () => parseServices('['.repeat(levels) + ']'.repeat(levels));
    expect(nested).toThrow(
      /^(it is nested too deeply|its entry 1 is neither a name nor a mapping with a name)$/,
    );
  });
});
