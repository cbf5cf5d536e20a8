module capstan

go 1.22
