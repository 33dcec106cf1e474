# CPU seconds of mclust for bench_answer.py: Rscript mclust_times.R FOLDER > mclust_times.json
# FOLDER has iris.csv, wine.csv, breast_cancer.csv and digits.csv, without header: numpy.savetxt(file, bench_answer.rows(name), delimiter=",")
suppressMessages(library(mclust))
folder <- commandArgs(TRUE)[1]
best_of <- function(work, repeats) min(replicate(repeats, system.time(work())["user.self"]))
fits <- list()
for (name in c("iris", "wine", "breast_cancer", "digits")) {
  X <- as.matrix(read.csv(file.path(folder, paste0(name, ".csv")), header = FALSE))
  for (model in c("VVV", "VVI", "EEE", "VII")) {
    fit <- Mclust(X, G = 6, modelNames = model, verbose = FALSE)
    seconds <- best_of(function() Mclust(X, G = 6, modelNames = model, verbose = FALSE), if (nrow(X) > 1000) 1 else 3)
    value <- if (is.null(fit)) "null" else sprintf("%.6f", fit$loglik / nrow(X))
    fits[[length(fits) + 1]] <- sprintf('"%s %s": {"seconds": %.6f, "log_likelihood": %s}', name, model, seconds, value)
  }
}
table_seconds <- best_of(function() mclustBIC(as.matrix(iris[, 1:4]), verbose = FALSE), 3)
cat(sprintf('{\n "mclust": "%s",\n "R": "%s.%s",\n "mclustBIC of iris": %.6f,\n "fits": {\n  %s\n }\n}\n', packageVersion("mclust"),
            R.version$major, R.version$minor, table_seconds, paste(fits, collapse = ",\n  ")))
