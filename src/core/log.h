/* log.h - one line to stderr, as the journal wants it */
#ifndef PROFIL_LOG_H
#define PROFIL_LOG_H

/* syslog's levels; the journal reads the prefix, a terminal is spared it. */
enum log_level {
	LOG_LEVEL_ERR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6
};

/* The program's name, put before every line where stderr is not the journal. */
void log_open(const char *name);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_err(...) log_line(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)

#endif
