/** Names of files that are no action's, of every kind: for a shell, a terminal, a pattern, an option, or nearly an action's. */
export const foreignNames: readonly string[] = [
  ...['A.json', '-rf.json', '-e sh.json', 'a b.json', 'a;reboot.json', '$(touch trap).json', '`x`.json'],
  ...[
    'a\nb.json',
    'a\tb.json',
    'a\u001b[2Jb.json',
    '\u202Eb.json',
    'ünï.json',
    'аdmin.json',
    '*.json',
    '?.json',
  ],
  ...[
    'a.json.json',
    'a.JSON',
    'json',
    'a',
    'a..json',
    'a_b.json',
    '|>f+++++++++|c.json',
    '~.json',
    '#a.json',
  ],
  ...[`${'a'.repeat(65)}.json`, 'a'.repeat(250), 'a\\#012b.json', "a'b.json", 'a"b.json', '%s%n.json'],
  ...['-', '--server'],
];
