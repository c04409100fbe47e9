-- compat: running programs neither write nor read the class 'all'.

alter table adjusted_scores
  drop constraint adjusted_scores_class_check,
  add check (class in ('agent', 'imported', 'all', 'family', 'model'));

alter table adjusted_boards
  drop constraint adjusted_boards_class_check,
  add check (class in ('agent', 'imported', 'all', 'family', 'model'));
